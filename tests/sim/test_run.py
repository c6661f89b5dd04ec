"""What running a kernel's text refuses, contains and reports."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from handwritten_kernels import NAMES, check, interface, run, text

from gemmgen.base.errors import CallError, CannotCheck
from gemmgen.calling.launches import Case
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import Aligned, MultipleOf
from gemmgen.numerics.reference import compare
from gemmgen.sim.failures import CompileFailure, KernelFault, KernelTimeout
from gemmgen.sim.packing import Argument
from gemmgen.sim.poisoned_memory import EmbeddedView
from gemmgen.sim.run import compile_kernel
from gemmgen.sim.unit import BEGIN, END

SOURCE = Param("A", "tensor", ("n",))
TARGET = Param("C", "tensor", ("n",), written=True, read=False)
SMALL = Interface(
    "small", (Param("N", "extent"), SOURCE, TARGET), (32, 1), (("N", 32),), (), 0, 0, ()
)


def small(body: str, *, before: str = "") -> str:
    """A kernel over A and C of N elements, a thread each."""
    return "\n".join(
        (
            BEGIN,
            before,
            'extern "C" __global__ void __launch_bounds__(32)',
            "    small(int N, const float *__restrict__ A, float *__restrict__ C) {",
            "  const int n = blockIdx.x * 32 + threadIdx.x;",
            "  if (N < 0) C[n] = A[n];  // so that each body may leave parameters unused",
            body,
            "}",
            END,
            "// no launcher",
        )
    )


def poisoned(rows: int, columns: int, pitch: int = 0, *, offset: int = 0) -> EmbeddedView:
    """A matrix never written, its rows ``pitch`` elements apart."""
    return EmbeddedView.strided((rows, columns), (pitch or columns, 1), offset=offset)


def run_small(body: str, n: int = 32, *, shared: int = 0, seconds: float = 10) -> EmbeddedView:
    a, c = poisoned(1, n), poisoned(1, n)
    a.view[:] = np.arange(1, n + 1)
    kernel = compile_kernel(small(body), replace(SMALL, dynamic_shared=shared))
    kernel.run({"N": n, "A": a.view[0], "C": c.view[0]}, seconds=seconds)
    assert a.touched() is None
    return c


COPY = "  if (n < N) C[n] = A[n];"


def test_runs_a_kernel_without_barriers() -> None:
    copied = run_small(COPY, 70)
    assert copied.touched() is None
    assert (copied.view == np.arange(1, 71)).all()


def test_serves_again_after_a_fault() -> None:
    kernel = compile_kernel(small("  if (n < 2) C[n * N] = A[0];"), SMALL)
    arrays = {name: np.ones(4096, np.float32) for name in "AC"}
    for _ in range(2):
        with pytest.raises(KernelFault):
            kernel.run({"N": 4096, **arrays})
        one = {"N": 1, "A": np.ones(1, np.float32), "C": np.zeros(1, np.float32)}
        with pytest.raises(KernelFault, match="wrote 0 bytes past the end of the memory of C"):
            kernel.run(one)


@pytest.mark.by_default("*const_cast*", "*1LL << 32*", "*volatile float x*")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  C[n] = A[n + (N << 10)];", r"thread \(0, 0\) of block 0 reads \d+ bytes past the .* A"),
        ("  C[n] = A[n - (N << 10)];", r"reads \d+ bytes before the memory of A"),
        ("  C[n + (N << 10)] = A[n];", r"writes \d+ bytes past the end of the memory of C"),
        ("  const_cast<float *>(A)[n] = 1; C[n] = 2;", r"writes .* A, which it may only read"),
        ("  C[n] = A[n - (1LL << 32)];", r"reads address 0x\w+, which belongs to no argument"),
        (
            "  C[n] = A[n] + N / static_cast<int>(threadIdx.z);",
            r"thread \(0, 0\) of block 0 stops with signal 8",
        ),
        (
            "  volatile float x[1 << 15]; x[0] = A[n]; C[n] = x[0];",
            r"thread \(0, 0\) of block 0 overflows its stack",
        ),
        (
            "  *reinterpret_cast<float4 *>(&C[n]) = *reinterpret_cast<const float4 *>(&A[n]);",
            r"thread \(1, 0\) of block 0 makes a misaligned wide access",
        ),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the words are those of x86-64 Linux")
def test_says_what_a_crash_did(body: str, message: str) -> None:
    with pytest.raises(KernelFault, match=message):
        run_small(body)


def test_ends_a_kernel_that_does_not() -> None:
    with pytest.raises(KernelTimeout):
        run_small("  while (N > 0) C[n] = A[n];", seconds=0.2)


def test_a_write_beside_the_tensor_shows() -> None:
    assert run_small("  C[n + 1] = A[n];").touched() == "the element 0 past the matrix was written"
    written = run_small("  C[n - 1] = A[n];").touched()
    assert written == "1 elements before the matrix were written"


def test_poison_copied_over_poison_shows() -> None:
    assert run_small("  if (n == 31) C[n + 2] = A[n + 1];").touched() is not None


def test_shared_memory_is_nan_in_each_block() -> None:
    body = """
  __shared__ alignas(16) float x[32];
  if (n < 32) x[31 - threadIdx.x] = A[n];
  __syncthreads();
  C[n] = x[threadIdx.x];"""
    got = run_small(body, 64).view[0]
    assert (got[:32] == np.arange(32, 0, -1)).all()
    assert np.isnan(got[32:]).all()


def test_dynamic_shared_memory_is_shared() -> None:
    body = """
  extern __shared__ alignas(16) unsigned char shared_memory[];
  float *x = reinterpret_cast<float *>(shared_memory);
  x[threadIdx.x] = A[n];
  __syncthreads();
  C[n] = x[31 - threadIdx.x + 32 * (N - 32) * 0];
  C[n] += x[threadIdx.x + 12000] == 0.0f ? 1.0f : 0.0f;"""
    got = run_small(body, shared=50000)
    assert (got.view[0] == np.arange(32, 0, -1)).all()


def test_a_variable_never_set_is_not_zero() -> None:
    got = run_small("  float sum; for (int i = 0; i < N; ++i) sum += A[i]; C[n] = sum;")
    assert (np.abs(got.view) > 1e38).all()


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_threads_run_in_the_order_asked_for(order: str) -> None:
    body = """
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  C[n] = A[n] * 0 + count++;
  __syncthreads();"""
    kernel = compile_kernel(small(body), SMALL)

    def ranks(seed: int) -> list[float]:
        arrays = {name: np.ones(32, np.float32) for name in "AC"}
        kernel.run({"N": 32, **arrays}, order=order, seed=seed)
        return arrays["C"].tolist()

    if order == "shuffled":
        assert sorted(ranks(0)) == list(range(32))
        assert ranks(0) == ranks(0) != ranks(1) != sorted(ranks(1))
    else:
        assert ranks(0) == sorted(range(32), reverse=order == "descending")


@pytest.mark.proof
@pytest.mark.parametrize("name", NAMES)
def test_portable_fibers_give_the_same_bits(name: str) -> None:
    kernel = compile_kernel(text(name), interface(name), ucontext=True)
    assert run(
        kernel, Case((35, 37, 45), "normal", 0.7, 0.0, 4), with_bias=name == "vectorized"
    ).equal


def test_host_functions_are_ieee() -> None:
    values = np.array([2.0, 1e-40, -0.0, np.inf, np.nan, 3.0000002], np.float32)
    got = np.zeros(6, np.float32)
    kernel = compile_kernel(small("  if (n < N) C[n] = sqrtf(A[n]) / 3.0f + 1e-42f;"), SMALL)
    kernel.run({"N": 6, "A": values, "C": got})
    want = np.sqrt(values) / np.float32(3) + np.float32(1e-42)
    assert compare(got, want).equal


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  C[n] = A[m];", r"small.cu:7:\d+: error: .*m.* was not declared"),
        ("  int unused = 1; C[n] = A[N];", "unused variable"),
        ("  if (n < N) C[n] = A[n] * 0.5;", "double"),
        ("  A[n] = C[N];", "read-only"),
        ("  C[n] = A[N]; threadIdx.x = 1;", "read-only"),
    ],
)
def test_refuses_text_with_an_error_or_a_warning(body: str, message: str) -> None:
    with pytest.raises(CompileFailure, match=message):
        compile_kernel(small(body), SMALL)


def test_refuses_parameters_other_than_the_interface_says() -> None:
    swapped = replace(SMALL, params=(SMALL.params[1], SMALL.params[0], SMALL.params[2]))
    with pytest.raises(CompileFailure, match="conflicting declaration"):
        compile_kernel(small(COPY), swapped)


def test_refuses_text_without_the_fixed_lines() -> None:
    with pytest.raises(CompileFailure, match="no kernel between"):
        compile_kernel("int x;", SMALL)


def test_a_failed_static_assert_is_a_compile_failure() -> None:
    with pytest.raises(CompileFailure, match="static assertion failed: too wide"):
        compile_kernel(small(COPY, before='static_assert(1 > 2, "too wide");'), SMALL)


def test_says_that_gxx_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotCheck, match=r"needs g\+\+, which is not installed\.$"):
        compile_kernel(small("  if (n < N) C[n] = A[n] + 2.0f;"), SMALL)


def call(**changed: Argument) -> dict[str, Argument]:
    a, b = np.ones((4, 8), np.float32), np.ones((8, 12), np.float32)
    c = np.zeros((4, 12), np.float32)
    values: dict[str, Argument] = {"M": 4, "N": 12, "K": 8, "alpha": 1.0, "beta": 0.0}
    values |= {"A": a, "lda": 8, "B": b, "ldb": 12, "C": c, "ldc": 12}
    return values | changed


READ_ONLY = np.zeros((4, 12), np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lda": 7}, "A has rows 8 elements apart, but lda is 7"),
        ({"K": 7}, r"A must have shape \(4, 7\), not \(4, 8\)"),
        ({"A": np.ones((4, 8))}, "A must be a float32 array, not float64"),
        ({"A": 3}, "A must be a float32 array, not 3"),
        ({"A": np.ones((8, 4), np.float32).T}, "A must be contiguous along k"),
        ({"C": READ_ONLY}, "C is written, but the array is read-only"),
        ({"M": -1}, "M must be an int from 0 to 2147483647, not -1"),
        ({"alpha": np.ones(1, np.float32)}, "alpha must be a number, not an array"),
        ({"bias": 1.0}, "gemm has no parameter bias"),
    ],
)
def test_refuses_a_call(changed: dict[str, Argument], message: str) -> None:
    kernel = compile_kernel(text("naive"), interface("naive"))
    with pytest.raises(CallError, match=message):
        kernel.run(call(**changed))


def test_refuses_a_call_that_breaks_a_requirement() -> None:
    needs = (*interface("naive").requirements, MultipleOf("lda", 16), Aligned("C", 16))
    kernel = compile_kernel(text("naive"), replace(interface("naive"), requirements=needs))
    with pytest.raises(CallError, match="gemm requires lda % 16 == 0"):
        kernel.run(call())
    shifted = poisoned(4, 12, offset=1).view
    wide = poisoned(4, 8, 16).view
    wide[:] = 1
    with pytest.raises(CallError, match="gemm requires C is 16-byte aligned"):
        kernel.run(call(C=shifted, A=wide, lda=16))


def test_refuses_a_missing_argument() -> None:
    arguments = call()
    del arguments["beta"]
    with pytest.raises(CallError, match="gemm needs an argument beta"):
        compile_kernel(text("naive"), interface("naive")).run(arguments)


def test_offset_pointers_keep_their_alignment() -> None:
    for offset in (0, 1, 2, 3):
        c = poisoned(4, 12, 13, offset=offset)
        kernel = compile_kernel(text("naive"), interface("naive"))
        kernel.run(call(C=c.view, ldc=13))
        assert (c.view == 8).all() and c.touched() is None


def test_two_arguments_may_lie_in_one_memory() -> None:
    memory = np.arange(64, dtype=np.float32)
    kernel = compile_kernel(small(COPY), SMALL)
    kernel.run({"N": 32, "A": memory[:32], "C": memory[32:]})
    assert (memory[32:] == np.arange(32)).all() and (memory[:32] == np.arange(32)).all()


def test_a_text_is_compiled_once() -> None:
    first = compile_kernel(text("naive"), interface("naive"))
    assert compile_kernel(text("naive"), interface("naive")) is first
    assert check("naive", Case((3, 4, 5), "normal")).equal


def test_the_package_imports_no_numpy() -> None:
    root = Path(__file__).parent.parent.parent
    code = "import gemmgen.sim, gemmgen.sim.toolchain, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0
