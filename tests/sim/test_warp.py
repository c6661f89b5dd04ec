"""The lanes of a warp meet: shuffles, barriers of a warp, and lanes that never come."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from functions import with_functions

from gemmgen.calling.launches import ORDERS
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import F32
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import compile_kernel
from gemmgen.sim.unit import BEGIN, END

A = Param("A", "tensor", ("n",))
C = Param("C", "tensor", ("n",), written=True, read=False)
INTERFACE = Interface("warps", (Param("N", "extent"), A, C), (96, 1), (("N", 96),), (), 0, 0, ())
LANE = np.arange(96) % 32


def whole(body: str, rows: int = 1) -> str:
    """A kernel of this body, its first line the fifth from BEGIN on."""
    kernel = "\n".join(
        (
            BEGIN,
            'extern "C" __global__ void warps(int N, const float *__restrict__ A, float *C) {',
            f"  const int n = threadIdx.x + {96 // rows} * threadIdx.y;",
            "  if (N < 0) C[n] = A[n];",
            body,
            "}",
            END,
        )
    )
    return with_functions(kernel)


def run(body: str, *, order: str = "ascending", rows: int = 1, ucontext: bool = False) -> F32:
    """What the body, run by 96 threads in ``rows`` rows, makes of A = 1, 2, ..."""
    interface = replace(INTERFACE, block=(96 // rows, rows))
    kernel = compile_kernel(whole(body, rows), interface, checked=True, ucontext=ucontext)
    arrays = {"A": np.arange(1, 97, dtype=np.float32), "C": np.zeros(96, np.float32)}
    kernel.run({"N": 96, **arrays}, order=order, seed=3)
    return arrays["C"]


@pytest.mark.by_default("False-2-shuffled")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rows", [1, 2, 6])
@pytest.mark.parametrize("ucontext", [False, True])
def test_shuffles_move_values_within_a_warp(
    order: str, rows: int, ucontext: bool, proof: bool
) -> None:
    def of(body: str) -> F32:
        return run(body, order=order, rows=rows, ucontext=ucontext)

    one = np.arange(1, 97, dtype=np.float32)
    for mask in (0, 1, 5, 16, 31, 33) if proof else (5, 33):
        got = of(f"  C[n] = gg_shuffle_xor(A[n], {mask});")
        assert (got == one - LANE + (LANE ^ (mask & 31))).all()
    for delta in (0, 1, 16, 31, 32) if proof else (1, 32):
        got = of(f"  C[n] = gg_shuffle_down(A[n], {delta});")
        down = LANE + delta % 32
        assert (got == one + np.where(down < 32, delta % 32, 0)).all()


@pytest.mark.parametrize("order", ORDERS)
def test_sums_over_a_warp(order: str) -> None:
    body = """
  float sum = A[n];
  #pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum += gg_shuffle_xor(sum, mask);
  double whole = static_cast<double>(A[n]) + 1e-12;
  for (int delta = 16; delta > 0; delta /= 2) whole += gg_shuffle_down(whole, delta);
  whole -= static_cast<double>(sum);
  C[n] = n % 32 == 0 && whole > 0 && whole < 1e-10 ? -sum : sum;"""
    sums = np.repeat(np.arange(1, 97).reshape(3, 32).sum(axis=1), 32)
    assert (run(body, order=order) == np.where(LANE == 0, -sums, sums)).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_barrier_of_the_warp_orders_what_its_lanes_do(order: str) -> None:
    body = """
  __shared__ float x[96];
  for (int i = 0; i < 3; ++i) {
    x[n] = A[n] + i;
    __syncwarp();
    C[n] = x[n ^ 31];
    __syncwarp();
  }
  __syncthreads();
  x[95 - n] = C[n];"""
    assert (run(body, order=order) == np.arange(96) + 1 - LANE + (LANE ^ 31) + 2).all()


RACES = {
    "a read with no barrier": "x[n] = A[n]; C[n] = x[n ^ 1];",
    "a shuffle orders no memory": "x[n] = gg_shuffle_xor(A[n], 1); C[n] = x[n ^ 1];",
    "another warp": "x[n] = A[n]; __syncwarp(); C[n] = x[(n + 32) % 96];",
    "a write over what is read": ("x[n] = A[n]; __syncwarp(); C[n] = x[n ^ 1]; x[n] = 0.0f;"),
    "a write over what another warp reads": (
        "if (n < 32) x[n] = 1.0f; __syncthreads(); C[n] = x[n % 32]; __syncwarp();"
        " if (n < 32) x[n] = 0.0f;"
    ),
    "a write over what was read after the barrier": (
        "x[n] = A[n]; __syncwarp(); C[n] = x[n]; __syncwarp(); C[n] = x[n ^ 1]; x[n] = 0.0f;"
    ),
}


@pytest.mark.by_default("shuffled-another warp", "shuffled-a shuffle orders no memory")
@pytest.mark.parametrize("race", RACES)
@pytest.mark.parametrize("order", ORDERS)
def test_finds_a_race(race: str, order: str) -> None:
    with pytest.raises(KernelFault, match=r"^race: thread .* x\[\d+\]"):
        run(f"  __shared__ float x[96];\n  {RACES[race]}", order=order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "  if (n == 40) return;\n  C[n] = gg_shuffle_xor(A[n], 1);",
            r"thread \(32, 0\) waits for its warp at line 6, but thread \(40, 0\) of that warp has "
            "left the kernel",
        ),
        (
            "  if (n % 32 > 3) __syncthreads();\n  else C[n] = gg_shuffle_down(A[n], 1);",
            r"thread \(0, 0\) waits for its warp at line 6, but thread \(4, 0\) of that warp waits "
            "at line 5",
        ),
        (
            "  if (n != 95) __syncwarp();\n  else\n    __syncwarp();",
            r"thread \(64, 0\) waits .* at line 5, but thread \(95, 0\) .* waits at line 7",
        ),
    ],
)
def test_names_the_lane_that_never_comes(order: str, body: str, message: str) -> None:
    before = whole(body).split("\n").index(BEGIN)
    message = re.sub(r"at line (\d)", lambda line: f"at line {int(line[1]) + before}", message)
    with pytest.raises(KernelFault, match="divergent warp in block 0: " + message) as raised:
        run(body, order=order)
    assert raised.value.findings[0].kind == "divergent warp"


def test_a_warp_of_fewer_lanes_does_not_meet() -> None:
    text = "\n".join(
        (
            BEGIN,
            'extern "C" __global__ void warps(int N, const float *A, float *C) {',
            "  C[N * 0 + threadIdx.x] = gg_shuffle_xor(A[threadIdx.x], 1);",
            "}",
            END,
        )
    )
    kernel = compile_kernel(with_functions(text), replace(INTERFACE, block=(40, 1)))
    with pytest.raises(KernelFault, match="a warp of 8 threads waits for its 32 lanes"):
        kernel.run({"N": 40, "A": np.ones(40, np.float32), "C": np.ones(40, np.float32)})
