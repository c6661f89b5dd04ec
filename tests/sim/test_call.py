"""Which argument is which, and what numbers are taken: one rule for kernels on a CPU and a GPU."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError
from gemmgen.calling.binding import Binding

EXAMPLES = Path(__file__).parents[2] / "examples"
TILED = "tile m=16 n=16 k=8\ncache_shared A B\n"
BIASED = TILED + "fuse_epilogue alpha * acc + beta * C[m, n] + bias[n]\n"


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


A, B = integers(9, 7), integers(7, 11)


def tiled(text: str = TILED):
    return gemmgen.compile(text, device="cpu")


def test_tensors_go_by_position_in_the_order_of_the_gemm_line() -> None:
    c = np.empty((9, 11), np.float32)
    np.testing.assert_array_equal(tiled()(A, B), A @ B)
    assert tiled()(A, B, c, alpha=2) is c
    np.testing.assert_array_equal(c, 2 * (A @ B))
    np.testing.assert_array_equal(tiled()(A, C=c, B=B), A @ B)
    bias = integers(11)
    np.testing.assert_array_equal(tiled(BIASED)(A, B, bias=bias), A @ B + bias)


def test_inputs_go_first_whatever_the_parameter_list_has() -> None:
    binding = Binding(gemmgen.compile(BIASED, device="cpu").interface)
    assert [p.name for p in binding.tensors] == ["A", "B", "C", "bias"] and binding.output == 2
    assert [p.name for p in binding.scalars] == ["alpha", "beta"]
    assert binding.bind(("a", "b"), {"bias": "v", "beta": 1}) == ["a", "b", None, "v", None, 1]


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        ((A, B), {"A": A}, "A is given twice: by position, and by name"),
        ((A,), {"B": B, "D": B}, "there is no argument D: the kernel takes A, B, C, bias"),
        ((A, B, None, B), {}, "4 arguments by position: the kernel takes A, B and C so; pass bias"),
        ((A,), {}, "B is missing: the kernel takes A, B, C, bias, alpha, beta"),
        ((A, B), {"bias": B[0], "beta": 1}, "C is missing: the kernel reads it, unless beta is 0"),
    ],
)
def test_refuses_what_it_cannot_bind(given: tuple, named: dict, message: str) -> None:
    with pytest.raises(CallError, match=message):
        tiled(BIASED)(*given, **named)


@pytest.mark.parametrize("two", [2, 2.0, np.float64(2), np.int8(2), np.array(2.0), np.float16(2)])
def test_whatever_holds_one_number_is_a_scalar(two: object) -> None:
    np.testing.assert_array_equal(tiled()(A, B, alpha=two), 2 * (A @ B))


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (2**2000, "alpha is more than a float64 holds"),
        (1e39, r"alpha = 1e\+39 is more than a float32 holds"),
        (np.ones(1), "alpha is a ndarray; the kernel takes a number"),
        (np.array("2"), "alpha is a str_; the kernel takes a number"),
        (Fraction(1, 2), "alpha is a Fraction; the kernel takes a number"),
        (2j, "alpha is a complex; the kernel takes a number"),
    ],
)
def test_what_is_no_number_is_refused(alpha: object, message: str) -> None:
    with pytest.raises(CallError, match=message):
        tiled()(A, B, alpha=alpha)


def test_a_float64_kernel_takes_large_numbers() -> None:
    kernel = gemmgen.compile("dtype A=f64 B=f64 C=f64 acc=f64\n" + TILED, device="cpu")
    assert kernel(np.ones((1, 1)), np.ones((1, 1)), alpha=1e300)[0, 0] == 1e300


@pytest.mark.proof
def test_the_same_schedule_gives_the_same_kernel(tmp_path: Path) -> None:
    path = tmp_path / "mine.sched"
    path.write_text(TILED)
    kernel = gemmgen.compile(path, device="cpu")
    assert gemmgen.compile(path, device="cpu") is kernel
    assert gemmgen.compile(path, device="cpu", arch="sm_90") is not kernel
    path.write_text(TILED + "kernel other\n")
    assert gemmgen.compile(path, device="cpu").name == "other"
    builder = gemmgen.Schedule("C[m, n] = A[m, k] * B[k, n]").tile(m=16, n=16, k=8)
    assert gemmgen.compile(builder, device="cpu") is gemmgen.compile(builder, device="cpu")


def test_a_kernel_knows_what_it_is() -> None:
    kernel = gemmgen.compile("fuse_epilogue relu(scale * acc + bias[n])\n", device="cpu")
    message = "<gemmgen kernel gemm(A[m, k], B[k, n], C[m, n], bias[n], scale) on the CPU>"
    assert repr(kernel) == message
    assert "fuse_epilogue" in kernel.schedule and kernel.text.startswith("// gemm: C[m, n] = ")
    assert gemmgen.emit_cuda(kernel.schedule) == kernel.text
