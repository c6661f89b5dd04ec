"""The checker passes good kernels and finds planted bugs."""

import dataclasses

import numpy as np
import pytest

from gemmgen.calling.launches import Case
from gemmgen.gpu import bench, bench_row
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.timing import time_interleaved
from gemmgen.gpu.verify_cases import cases, verify
from gemmgen.ir.requirement import MultipleOf

from . import kernels

cp = pytest.importorskip("cupy")
SHAPES = [(1, 1, 1), (2, 3, 5), (127, 131, 257), (128, 128, 128), (33, 65, 31), (64, 64, 0)]


def tiled(old: str = "", new: str = "") -> Kernel:
    text = kernels.text("tiled")
    assert old in text
    return Kernel(text.replace(old, new), kernels.interface(*kernels.PLAIN["tiled"]))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_good_kernel_passes(shape: tuple[int, int, int]) -> None:
    outcomes = verify(tiled(), cases(shape))
    assert [(o.status, o.detail) for o in outcomes] == [("passed", "")] * len(outcomes)


def test_a_batched_kernel_passes() -> None:
    kernel = Kernel(kernels.BATCHED, kernels.batched())
    outcomes = verify(kernel, cases((13, 37, 11, 3)))
    assert [(o.status, o.detail) for o in outcomes] == [("passed", "")] * len(outcomes)


BUGS = {
    "writes zeros": ("c = beta ==", "c = 0.0f * alpha; return; c = beta =="),
    "writes nothing": ("if (m < M && n < N) {", "if (m < M && n < N && K < 0) {"),
    "writes NaN": ("c = beta ==", "c = __int_as_float(0x7fc00000); return; c = beta =="),
    "drops alpha": ("beta == 0.0f ? alpha * acc", "beta == 0.0f ? acc"),
    "drops alpha, keeps beta": ("fmaf(beta, c, alpha * acc)", "fmaf(beta, c, acc)"),
    "reads C where beta is 0": ("beta == 0.0f ? alpha * acc : ", ""),
    "loses the tail of k": ("tile_k < K;", "tile_k + TILE <= K;"),
    "swaps a leading dimension": ("(m) * lda", "(m) * K"),
    "writes beyond a row": ("if (m < M && n < N) {", "if (m < M && n < ldc) {"),
    "writes into A": ("float acc = 0.0f;", "float acc = 0.0f; ((float *)A)[0] = 9.0f;"),
    "loses precision": (
        "acc = fmaf(A_shared[y][k], B_shared[k][x], acc)",
        "acc = fmaf(__int_as_float(__float_as_int(A_shared[y][k]) & ~8191), B_shared[k][x], acc)",
    ),
    "drops one term of many": ("k < TILE; ++k", "k < TILE - (tile_k == 32); ++k"),
    "depends on time": ("float acc = 0.0f;", "float acc = (clock64() % 1024) * 1e-7f;"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_checker_finds(bug: str) -> None:
    kernel = tiled(*BUGS[bug])
    outcomes = verify(kernel, cases((70, 75, 67)))
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    assert failed and all(outcome.detail for outcome in failed)


def test_an_epilogue_is_held_to_its_reference() -> None:
    kernel = Kernel(kernels.text("vectorized"), kernels.relu_bias())

    def reference(given: dict) -> np.ndarray:
        return np.maximum(given["A"] @ given["B"] + given["bias"], 0)

    wanted = cases((130, 132, 36))
    assert {o.status for o in verify(kernel, wanted, reference=reference)} == {"passed"}
    assert "failed" in {o.status for o in verify(kernel, wanted)}


def test_a_case_that_the_kernel_does_not_take_is_refused() -> None:
    interface = kernels.interface(*kernels.PLAIN["tiled"])
    narrow = dataclasses.replace(interface, requirements=(MultipleOf("N", 4),))
    (outcome,) = verify(Kernel(kernels.text("tiled"), narrow), [Case((4, 5, 4))])
    assert (outcome.status, "N % 4 == 0" in outcome.detail) == ("refused", True)


@pytest.mark.timing
@pytest.mark.parametrize("graph", [True, False])
def test_a_kernel_against_itself_is_a_tie(graph: bool) -> None:
    """One of five attempts is enough: tests in other processes use the same GPU."""
    kernel = tiled()
    a, b, c = (cp.ones((256, 256), "float32") for _ in range(3))
    launch = kernel.prepare(A=a, B=b, C=c)
    apart: list[float] = []
    for _ in range(5):
        found = time_interleaved({"one": launch, "two": launch}, warmup=0.2, graph=graph)
        assert found["one"].launches > 1
        apart.append(abs(found["one"].median / found["two"].median - 1))
        if apart[-1] < 0.05:
            return
    raise AssertionError(apart)


def test_rows_are_checked_and_compared_with_cublas() -> None:
    wrong = tiled(*BUGS["drops one term of many"])
    entries = [bench.Entry("tiled", tiled()), bench.Entry("wrong", wrong)]
    shapes = [{"M": 256, "N": 128, "K": 512}, {"M": 1000, "N": 1000, "K": 1000}]
    rows = bench.bench(entries, shapes, warmup=0.2, rounds=5)
    assert len(rows) == 6
    for row in rows:
        assert row.checked == (row.name != "wrong")
        assert row.ms is not None and row.ms > row.floor > 0
    assert [row.share for row in rows if row.name.startswith("cuBLAS")] == [1.0, 1.0]
    assert bench_row.as_json(rows)[0]["shape"] == shapes[0]
    assert bench_row.table(rows).row_count == 6
