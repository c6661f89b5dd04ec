"""G2's cases and comparisons, with NumPy in place of CuPy and the CPU's run of the text in that
of a launch: right kernels pass, and wrong ones are found."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmgen.calling.launches import Case
from gemmgen.gpu import bench, compare, elements, verify_cases
from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted
from gemmgen.proof.gpu import reference_of
from gemmgen.proof.rounded_epilogue import is_exact
from gemmgen.sim.host_kernel import HostKernel

from .subjects import LADDER, TILED, subject

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")


class HostArray(np.ndarray):
    """A NumPy array that is brought to the host as a CuPy array is."""

    def get(self) -> np.ndarray:
        return np.asarray(self)


def host(function: Any) -> Any:
    return lambda *given, **named: np.asarray(function(*given, **named)).view(HostArray)


def generator(seed: int) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    names = ("standard_normal", "integers", "random")
    return SimpleNamespace(**{name: host(getattr(rng, name)) for name in names})


CUPY = SimpleNamespace(
    **{name: host(getattr(np, name)) for name in ("full", "zeros", "asarray", "where")},
    broadcast_to=lambda array, shape: np.broadcast_to(array, shape, subok=True),
    equal=np.equal,
    isnan=np.isnan,
    isinf=np.isinf,
    copysign=np.copysign,
    argmax=np.argmax,
    count_nonzero=np.count_nonzero,
    random=SimpleNamespace(default_rng=generator),
    lib=SimpleNamespace(
        stride_tricks=SimpleNamespace(
            as_strided=lambda *given: np.lib.stride_tricks.as_strided(*given, subok=True)
        )
    ),
)


class OnHost:
    """A kernel that is called as one on a GPU is."""

    def __init__(self, emitted: Emitted):
        self.interface: Interface = emitted.interface
        self.kernel = HostKernel.of(emitted)

    def __call__(self, **arguments: object) -> object:
        plain = {n: np.asarray(a) if isinstance(a, HostArray) else a for n, a in arguments.items()}
        return self.kernel(**plain)


@pytest.fixture(autouse=True)
def numpy_for_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compare, elements, verify_cases):
        monkeypatch.setattr(module, "cupy", lambda: CUPY)
    monkeypatch.setattr(verify_cases, "is_plain", lambda _: False)


def outcomes(emitted: Emitted, *shapes: tuple[int, ...]) -> list[tuple[str, str]]:
    chosen = [case for shape in shapes for case in verify_cases.cases(shape)]
    found = verify_cases.verify(
        OnHost(emitted),
        chosen,
        reference=reference_of(emitted),
        exact=is_exact(emitted.program.problem),
    )
    assert [outcome.case for outcome in found] == chosen
    return [(outcome.status, outcome.detail) for outcome in found]


BATCHED = f"gemm C[b, m, n] = A[b, k, m] * B[k, n]\n{TILED}"
RIGHT = {
    "ladder": (LADDER, (33, 36, 17)),
    "batched": (BATCHED, (17, 19, 9, 3)),
    "halves": (f"dtype f16\n{TILED}", (17, 19, 9)),
    "bfloat16": (f"dtype bf16\n{TILED}", (17, 19, 9)),
    "doubles": (f"dtype f64\n{TILED}", (17, 19, 9)),
    "transposed": ("gemm C[n, m] = A[k, m] * B[n, k]\n", (17, 19, 9)),
    "bias": (f"{TILED}fuse_epilogue gelu(acc + bias[n]) * s\n", (17, 19, 9)),
    "split": (f"{BATCHED}split_k parts=2 reduce=atomic\n", (17, 19, 9, 2)),
}


@pytest.mark.by_default("split")
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass(name: str) -> None:
    schedule, shape = RIGHT[name]
    none = (*shape[:2], 0, *shape[3:])
    found = outcomes(subject(schedule).emitted, shape, none)
    assert found == [("passed", "")] * 12


WRONG = {
    "drops alpha": ("alpha * ", "1.0f * "),
    "reads C where beta is 0": ("beta != 0.0f ? ", "true ? "),
    "loses the last steps": ("tile_k < K;", "tile_k + BK <= K;"),
    "writes beyond a row": ("n < N)", "n < ldc)"),
    "takes K for a leading dimension": ("m * lda", "m * K"),
}


@pytest.mark.by_default("drops alpha", "writes beyond a row")
@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_kernels_are_found(mistake: str) -> None:
    right, (old, new) = subject(TILED).emitted, WRONG[mistake]
    header, begin, text = right.text.partition("__global__")
    assert old in text
    wrong = replace(right, text=header + begin + text.replace(old, new))
    failed = [detail for status, detail in outcomes(wrong, (35, 37, 19)) if status == "failed"]
    assert failed and all(failed)


def test_an_infinity_and_a_nan_are_met_in_their_rows_alone() -> None:
    emitted = subject(TILED).emitted
    chosen = [Case((9, 7, 5), data) for data in ("NaN in A", "infinity in B")]
    found = verify_cases.verify(OnHost(emitted), chosen)
    assert [outcome.status for outcome in found] == ["passed", "passed"]


def test_a_call_that_a_kernel_does_not_take_is_refused() -> None:
    emitted = subject("assume N % 4 == 0\n" + TILED).emitted
    (found,) = verify_cases.verify(OnHost(emitted), [Case((4, 5, 4))])
    assert found.status == "refused" and "N % 4 == 0" in found.detail


def test_extents_are_timed_by_their_names_in_any_order() -> None:
    batched = subject("gemm C[b, m, n] = A[b, m, k] * B[k, n]\n").emitted.interface
    assert bench.in_order(batched, {"size_b": 2, "M": 3, "N": 4, "K": 5}) == (3, 4, 5, 2)
    assert bench.in_order(batched, {"M": 3, "N": 4, "K": 5, "size_b": 2}) == (3, 4, 5, 2)


def test_infinity_is_right_for_what_a_half_cannot_hold() -> None:
    value, bound = np.array([1e5, 6e4]).view(HostArray), np.full(2, 64.0).view(HostArray)
    expected = compare.Expected(value, bound)
    with np.errstate(over="ignore"):  # CuPy warns of none
        right = expected.difference(np.array([np.inf, 6e4], np.float16).view(HostArray), "f16")
        wrong = expected.difference(np.array([np.inf, np.inf], np.float16).view(HostArray), "f16")
    assert right is None
    assert wrong is not None and wrong.startswith("C[1]")
