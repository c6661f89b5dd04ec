"""gemmgen from Python."""

from __future__ import annotations

import pathlib

import pytest

import gemmgen
from gemmgen.api.kernels import compile_any
from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.gpu import device

from .running import EXAMPLES

TILED = (
    gemmgen.Schedule("C[m, n] = A[m, k] * B[k, n]").tile(m=32, n=32, k=32).cache_shared("A", "B")
)


def test_emit_takes_a_path_a_text_a_builder_and_a_value():
    path = EXAMPLES / "tiled.sched"
    texts = {
        gemmgen.emit_cuda(path),
        gemmgen.emit_cuda(str(path)),
        gemmgen.emit_cuda(path.read_text()),
        gemmgen.emit_cuda(TILED),
        gemmgen.emit_cuda(TILED.build()),
    }
    assert len(texts) == 1 and "__global__" in texts.pop()


def test_emit_stays_a_function_whatever_is_imported():
    import gemmgen.emit.ctext
    import gemmgen.pipeline

    assert gemmgen.emit_cuda(TILED).startswith("// gemm: ")


def test_arch_and_set_settle_a_schedule():
    space = TILED.assume("K % 4 == 0").kernel("mine").raster(group={1, 8})
    emitted = compile_any(space, arch="sm_90", set={"raster.group": 8})
    assert (emitted.name, emitted.target) == ("mine", "sm_90")
    with pytest.raises(gemmgen.ScheduleError, match=r"raster\.group=1"):
        gemmgen.emit_cuda(space)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemmgen.emit_cuda("missing.sched"), "no such file"),
        (lambda: gemmgen.emit_cuda(pathlib.Path("missing")), "no such file"),
        (lambda: gemmgen.emit_cuda(3), "not a int"),
        (lambda: gemmgen.emit_cuda(TILED, arch="sm_1"), "there are sm_75"),
        (lambda: gemmgen.emit_cuda(TILED.build(), set={"tile.m": 1}), "a Schedule has none"),
        (lambda: gemmgen.emit_cuda(TILED, set={5: 16}), r"set=\{5: 16\} fixes nothing"),
        (lambda: gemmgen.emit_cuda(TILED, set={"tile.m": [16]}), "fixes nothing"),
        (lambda: gemmgen.emit_cuda(TILED, set=5), "set= is a int; it maps"),
    ],
)
def test_mistakes_are_sentences(call, message: str):
    with pytest.raises(UsageError, match=message):
        call()


def test_a_schedules_mistake_has_its_place():
    with pytest.raises(gemmgen.ScheduleError) as caught:
        gemmgen.emit_cuda("tile m=32 n=32 k=8\nvectorize A width=3\n")
    assert caught.value.line == 2 and caught.value.hint


def test_compile_without_a_gpu_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    if device.missing() is None:
        pytest.skip("there is a GPU here")
    with pytest.raises(CannotCheck):
        gemmgen.compile(TILED)


def test_the_module_has_what_it_lists():
    for name in gemmgen.__all__:
        assert getattr(gemmgen, name) is not None and name in dir(gemmgen)
    with pytest.raises(AttributeError, match="no attribute 'comply'"):
        gemmgen.comply  # noqa: B018
