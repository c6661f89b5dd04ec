"""``require registers`` and ``require spills``: never passed by a machine that did not compile."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import compilers
import pytest

from gemmgen import CannotCheck, ScheduleError
from gemmgen.api import kernels as api
from gemmgen.proof import cpu, gpu, meaning, nvcc_object
from gemmgen.proof.outcome import passed, skipped
from gemmgen.torch import operator

from .running import gemmgen

NAIVE = "target sm_90a\nrequire registers <= {}\n"
GATE = "require registers <= 200"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked here is C3, of the kernel alone."""
    for module, layer in ((meaning, "C1"), (cpu, "C2")):
        monkeypatch.setattr(module, "check", lambda _, layer=layer: passed(layer, "held"))
    monkeypatch.setattr(gpu, "check", lambda _: skipped("G2", "no GPU"))
    monkeypatch.setattr(
        nvcc_object, "compiled", lambda *_: nvcc_object.NvccObject(None, "no launcher")
    )


@pytest.mark.parametrize("command", ["verify", "check", "emit"])
def test_without_a_compiler_a_gate_is_not_passed(command: str, monkeypatch: pytest.MonkeyPatch):
    with compilers.none_at_all(monkeypatch):
        result = gemmgen(command, "-", input=NAIVE.format(200))
        plain = gemmgen(command, "-", input="kernel naive\n")
    assert (result.exit_code, plain.exit_code) == (3, 0)
    message = result.stdout if command == "verify" else result.stderr
    assert GATE in message and "not evaluated" in message and "nvcc" in message
    assert "not evaluated" not in plain.output


def test_the_kernel_is_written_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with compilers.none_at_all(monkeypatch):
        assert gemmgen("emit", "-", "-o", tmp_path / "k.cu", input=NAIVE.format(200)).exit_code == 3
    assert "__global__" in (tmp_path / "k.cu").read_text()


@pytest.mark.by_default("check-2", "emit-2")
@pytest.mark.parametrize(("command", "code"), [("verify", 1), ("check", 2), ("emit", 2)])
def test_with_a_compiler_it_is_evaluated(command: str, code: int, tmp_path: Path):
    compilers.needed()
    assert gemmgen(command, "-", input=NAIVE.format(200)).exit_code == 0
    more = ("-o", tmp_path / "k.cu") if command == "emit" else ()
    result = gemmgen(command, "-", *more, input=NAIVE.format(10))
    assert result.exit_code == code
    assert "require registers <= 10 does not hold: registers = " in result.output
    assert not (tmp_path / "k.cu").exists()


def test_a_broken_gate_is_shown_where_it_is_written():
    compilers.needed()
    message = gemmgen("check", "-", input=NAIVE.format(10)).stderr
    assert message.startswith("<stdin>:2:") and "^" in message and "compiled by " in message


def test_python_raises_what_the_command_prints():
    compilers.needed()
    api.emit_cuda(NAIVE.format(200))
    api.compile(NAIVE.format(200), device="cpu")
    for call in (api.emit_cuda, partial(api.compile, device="cpu")):
        with pytest.raises(ScheduleError, match="require registers <= 10 does not hold") as broken:
            call(NAIVE.format(10))
        assert (broken.value.line, broken.value.column) == (2, 1)


def test_a_kernel_for_a_gpu_is_held_to_its_gates(monkeypatch: pytest.MonkeyPatch):
    compilers.needed()
    loaded: list[object] = []
    monkeypatch.setattr(api, "_current_gpu", lambda: 0)
    monkeypatch.setattr("gemmgen.gpu.launch.Kernel.of", lambda emitted: loaded.append(emitted))
    with pytest.raises(ScheduleError, match="registers = "):
        api.compile(NAIVE.format(11))
    assert not loaded
    api.compile(NAIVE.format(201))
    assert len(loaded) == 1


def test_without_a_compiler_python_gives_no_text_and_a_kernel_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
):
    with compilers.none_at_all(monkeypatch):
        with pytest.raises(CannotCheck, match=f"{GATE}: not evaluated: .*nvcc"):
            api.emit_cuda(NAIVE.format(200))
        assert "__global__" in api.emit_cuda("kernel naive\n")
        api.compile(NAIVE.format(202), device="cpu")


def test_a_mistake_counts_more_than_what_was_not_evaluated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    files = [tmp_path / "gate.sched", tmp_path / "wrong.sched"]
    files[0].write_text(NAIVE.format(200))
    files[1].write_text("tile m=\n")
    with compilers.none_at_all(monkeypatch):
        assert gemmgen("check", *files).exit_code == 2
        assert gemmgen("check", *files[::-1]).exit_code == 2


def test_an_operator_of_pytorch_is_held_to_them(monkeypatch: pytest.MonkeyPatch):
    compilers.needed()
    monkeypatch.setattr(operator, "pytorch", lambda: None)
    with pytest.raises(ScheduleError, match="require registers <= 10 does not hold"):
        operator.op(NAIVE.format(10), name="my::held")
