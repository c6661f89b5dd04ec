"""The command line's work as Python functions."""

import re

import numpy as np
import pytest

import gemmgen
from gemmgen.base.source import Source
from gemmgen.gpu import device
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.proof import compiled
from gemmgen.schedule.extents import AnyShape, shape_of

TILED = "tile m=32 n=32 k=8\ncache_shared A B\n"
BATCHED = parse_schedule(Source("gemm C[b, m, n] = A[b, m, k] * B[k, n]\n")).gemm


@pytest.mark.proof
def test_verify_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "ARCHITECTURES", ())
    found = gemmgen.verify(TILED, [(33, 40, 17)])
    assert found.proved and found.exit_code == 0
    assert [o.layer for o in found.outcomes] == ["C0", "C1", "C2", "C3", "P", "G2"]
    assert "C2  passed" in str(found)
    assert repr(found).startswith("<Verification: C0 passed, C1 passed, C2 passed, ")


@pytest.mark.proof
@pytest.mark.skipif(device.missing() is None, reason="there is a GPU here")
def test_verify_with_a_layer_that_cannot_run() -> None:
    found = gemmgen.verify(TILED, [(33, 40, 17)], require=["G2"])
    assert not found.proved and found.exit_code == 3


def test_suggest_answers() -> None:
    found = gemmgen.suggest("C[m, n] = A[k, m] * B[k, n]", (300, 200, 500))
    assert "tile" in found.text and found.schedule.gemm.a.indices == ("k", "m")


@pytest.mark.usefixtures("estimated")
def test_explain_reports() -> None:
    found = gemmgen.explain(TILED, {"m": 64, "n": 64, "k": 64})
    assert "global reads of A and B" in str(found)
    assert found.figures()


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        (5, (5, 5, 5, 1)),
        ((2, 3, 4), (2, 3, 4, 1)),
        ((2, 3, 4, 9), (2, 3, 4, 9)),
        ({"n": 3, "m": 2, "k": 4, "b": 9}, (2, 3, 4, 9)),
    ],
)
def test_shapes(shape: AnyShape, sizes: tuple[int, ...]) -> None:
    assert shape_of(BATCHED, shape) == sizes


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3), "has the extents of m, n, k, b"),
        ({"m": 2, "n": 3}, "lacks k"),
        ({"m": 2, "n": 3, "k": 4, "z": 1}, "has no letter z"),
        ((2, 3, -1), "not -1"),
        (2**31, "not 2147483648"),
        (True, "not True"),
    ],
)
def test_shapes_that_are_none(shape: AnyShape, message: str) -> None:
    with pytest.raises(gemmgen.UsageError, match=message):
        shape_of(BATCHED, shape)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gemmgen.verify(TILED, require=["C9"]),
        lambda: gemmgen.explain(TILED, gpu="Voodoo"),
        lambda: gemmgen.tune("tile m={8, 16}\n", []),
        lambda: gemmgen.tune("tile m={8, 16}\n", [64], arch="sm_1"),
        lambda: gemmgen.tune("tile m=8 n=8\n", [64]),
    ],
)
def test_arguments_that_cannot_be_used(call: object) -> None:
    with pytest.raises(gemmgen.UsageError):
        call()  # type: ignore[operator]


@pytest.mark.skipif(device.missing() is None, reason="there is a GPU here")
def test_what_needs_a_gpu_says_so() -> None:
    with pytest.raises(gemmgen.CannotCheck):
        gemmgen.bench(TILED, [64])


def test_every_error_has_one_base() -> None:
    with pytest.raises(gemmgen.GemmgenError):
        gemmgen.compile("tile m=0\n")
    with pytest.raises(gemmgen.GemmgenError):
        gemmgen.compile(TILED, device="cpu")(np.zeros((2, 3), "f4"), np.zeros((4, 5), "f4"))
    assert issubclass(gemmgen.KernelFailure, gemmgen.GemmgenError)


def test_representations_are_one_line() -> None:
    """The interactive shell shows them; ``print`` shows a schedule's text."""
    built = gemmgen.Schedule("C[m, n] = A[m, k] * B[k, n]").tile(m=32, n=32, k=8)
    schedule = built.build()
    assert repr(built) == "<Schedule C[m, n] = A[m, k] * B[k, n]: 2 statements>"
    assert repr(schedule) == "<Schedule gemm: C[m, n] = A[m, k] * B[k, n], 1 directive>"
    assert str(schedule) + "\n" == built.text()
    emitted = compile_schedule(schedule)
    assert repr(emitted) == f"<Emitted gemm for sm_80: {len(emitted.text.splitlines())} lines>"


@pytest.mark.usefixtures("estimated")
def test_a_shape_is_a_tuple() -> None:
    explained = gemmgen.explain(TILED, (64, 48, 32))
    assert repr(explained) == "<Explained gemm at 64x48x32 on H200>"
    found = gemmgen.suggest(shape=(64, 48, 32))
    assert found.text == gemmgen.suggest(shape="64x48x32").text


@pytest.mark.usefixtures("estimated")
def test_a_suggestion_is_one_line_and_prints_as_a_schedule_file() -> None:
    found = gemmgen.suggest("C[m, n] = A[m, k] * B[n, k]", (64, 48, 32), gpu="A100")
    about = r"<Suggestion for C\[m, n\] = A\[m, k\] \* B\[n, k\] at 64x48x32 on A100: "
    assert re.fullmatch(about + r"[\d.]+ us, estimated>", repr(found))
    assert f"{found}\n" == found.text and gemmgen.emit_cuda(str(found)) == found.emitted.text
