"""Barriers of some warps of a block: right kernels in every order, and mistakes are found."""

from __future__ import annotations

import re

import numpy as np
import pytest
from functions import with_functions

from gemmgen.calling.launches import ORDERS, STRICT_ORDERS
from gemmgen.ir.interface import Interface, Param
from gemmgen.numerics.formats import F32
from gemmgen.sim.failures import CompileFailure, KernelFault
from gemmgen.sim.findings import Finding
from gemmgen.sim.run import compile_kernel
from gemmgen.sim.unit import BEGIN, END

THREADS = 128
"""Four warps: two groups of two."""
A = Param("A", "tensor", ("n",))
C = Param("C", "tensor", ("n",), written=True, read=False)
SIZES = (("N", THREADS),)
INTERFACE = Interface("groups", (Param("N", "extent"), A, C), (THREADS, 1), SIZES, (), 0, 0, ())
ALL_ORDERS = (*ORDERS, *STRICT_ORDERS)


def whole(body: str) -> str:
    kernel = (
        BEGIN,
        'extern "C" __global__ void groups(int N, const float *__restrict__ A, float *C) {',
        "  [[maybe_unused]] const int n = threadIdx.x, group = n / 64;",
        "  if (N < 0) C[n] = A[n];",
        body,
        "}",
        END,
    )
    return with_functions("\n".join(kernel))


def line_of(body: str, part: str) -> int:
    """The number of the line of the kernel's text that has ``part``."""
    lines = whole(body).split("\n")
    first = lines.index(BEGIN)
    return next(i for i, line in enumerate(lines, 1) if i > first and part in line)


def run(body: str, order: str = "ascending", seed: int = 3) -> F32:
    """What the body, run by 128 threads, makes of A = 1, 2, ..."""
    kernel = compile_kernel(whole(body), INTERFACE)
    arrays = {
        "A": np.arange(1, THREADS + 1, dtype=np.float32),
        "C": np.zeros(THREADS, np.float32),
    }
    kernel.run({"N": THREADS, **arrays}, order=order, seed=seed)
    return arrays["C"]


def finding(body: str, order: str = "ascending") -> Finding:
    with pytest.raises(KernelFault) as raised:
        run(body, order)
    return raised.value.findings[0]


TURNS = """
  __shared__ float x[128];
  x[n] = A[n];
  for (int i = 0; i < 3; ++i) {
    gg_sync_warps(1 + group, 64);
    const float other = x[n ^ 63];
    gg_sync_warps(1 + group, 64);
    x[n] = other + 1;
  }
  __syncthreads();
  C[n] = x[127 - n];"""
"""Each group exchanges its values; then the groups do."""


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_two_groups_meet_each_at_its_own_barrier(order: str) -> None:
    n = np.arange(THREADS)
    turned = (n ^ 63) + 1 + 3
    assert (run(TURNS, order) == turned[::-1]).all()


def test_all_threads_at_a_numbered_barrier() -> None:
    body = (
        "  __shared__ float x[128];\n  x[n] = A[n];\n  gg_sync_warps(0, 128);\n  C[n] = x[127 - n];"
    )
    assert (run(body) == np.arange(THREADS, 0, -1)).all()


@pytest.mark.parametrize(
    ("number", "threads", "detail"),
    [
        ("16", "64", "barrier 16 of a block's 16, numbered from 0"),
        ("1", "48", "barrier 1 of 48 threads, in a block of 128: whole warps meet"),
        ("1", "0", "barrier 1 of 0 threads, in a block of 128: whole warps meet"),
        ("1", "160", "barrier 1 of 160 threads, in a block of 128: whole warps meet"),
    ],
)
def test_refuses_a_barrier_that_does_not_exist(number: str, threads: str, detail: str) -> None:
    body = f"  gg_sync_warps({number}, {threads});"
    found = finding(body)
    assert (found.kind, found.detail) == ("wrong barrier", detail)
    assert found.access.line == line_of(body, "gg_sync_warps(")


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_finds_a_count_that_others_do_not_have(order: str) -> None:
    body = "  gg_sync_warps(1, n < 96 ? 128 : 64);"
    found = finding(body, order)
    assert found.kind == "wrong barrier" and found.other is not None
    assert re.fullmatch(r"barrier 1 has (64|128) threads here and (64|128) elsewhere", found.detail)


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_tells_who_waits_for_what_in_a_deadlock(order: str) -> None:
    body = """
  if (n < 96) {
    gg_sync_warps(3, 128);
  } else if (n > 200) {
    gg_sync_warps(2, 128);
  } else {
    __syncthreads();
  }"""
    found = finding(body, order)
    first, second = line_of(body, "gg_sync_warps(3"), line_of(body, "__syncthreads()")
    assert found.kind == "deadlock" and found.lines == (first, second)
    assert found.text() == (
        f"deadlock in block 0, at line {first} `gg_sync_warps(3, 128);`: "
        f"96 threads wait at line {first} for barrier 3 of 128 threads; "
        f"32 threads wait at line {second} for all threads of the block"
    )


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_tells_how_many_have_left_in_a_deadlock(order: str) -> None:
    body = "  if (n < 32) return;\n  gg_sync_warps(1, 128);"
    found = finding(body, order)
    line = line_of(body, "gg_sync_warps")
    assert found.kind == "deadlock"
    assert found.detail == (
        f"32 threads have left; 96 threads wait at line {line} for barrier 1 of 128 threads"
    )


def test_lanes_come_to_a_barrier_together() -> None:
    body = "  if (n % 32 < 31) gg_sync_warps(1, 64);"
    found = finding(body)
    assert found.kind == "divergent warp" and found.lines == (line_of(body, "gg_sync"),)


def test_the_block_s_barrier_is_that_of_all_its_threads() -> None:
    body = "  if (n < 64) gg_sync_warps(0, 64);\n  else __syncthreads();"
    assert finding(body).kind == "wrong barrier"


def test_a_barrier_orders_memory_for_the_compiler_too() -> None:
    text = whole(TURNS).replace(' : "memory"', "")
    with pytest.raises(CompileFailure, match=r"bar\.sync touches memory"):
        compile_kernel(text, INTERFACE)
