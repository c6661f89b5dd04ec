"""Barriers of some warps of a block: right kernels in every order, and mistakes are found."""

from __future__ import annotations

import re

import numpy as np
import pytest
from functions import with_functions

from gemmgen.calling.launches import ORDERS, STRICT_ORDERS
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
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


def run(body: str, order: str = "ascending", *, seed: int = 3, checked: bool = True) -> F32:
    """What the body, run by 128 threads, makes of A = 1, 2, ..."""
    kernel = compile_kernel(whole(body), INTERFACE, checked=checked)
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
    transposed = (n ^ 63) + 1 + 3
    assert (run(TURNS, order) == transposed[::-1]).all()


def test_all_threads_at_a_numbered_barrier() -> None:
    body = (
        "  __shared__ float x[128];\n  x[n] = A[n];\n  gg_sync_warps(0, 128);\n  C[n] = x[127 - n];"
    )
    assert (run(body) == np.arange(THREADS, 0, -1)).all()


@pytest.mark.by_default("1-48-*", "16-64-*")
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


RIGHT = {
    "a group that waits for the other": """
  __shared__ float x[64];
  if (group == 0) x[n] = A[n];
  gg_sync_warps(1, 128);
  C[n] = x[63 - n % 64];""",
    "what a warp knows of another, a third learns from it": """
  __shared__ float x[32];
  if (n < 32) x[n] = A[n];
  if (n < 64) gg_sync_warps(1, 64);
  if (n >= 32 && n < 96) gg_sync_warps(2, 64);
  if (n >= 64 && n < 96) C[n] = x[95 - n];
  __syncthreads();
  if (n < 64 || n >= 96) C[n] = 0.0f;""",
    "what a lane knows of its warp, another warp learns": """
  __shared__ float x[64];
  if (group == 0) {
    x[n ^ 1] = A[n];
    __syncwarp();
    x[n] += 1.0f;
    __syncwarp();
    x[n ^ 2] += 1.0f;
  }
  gg_sync_warps(1, 128);
  C[n] = x[n % 64];""",
    "a barrier used by others after the block's": """
  __shared__ float x[64];
  if (group == 0) x[n] = A[n];
  if (group == 0) gg_sync_warps(1, 64);
  __syncthreads();
  if (group == 1) gg_sync_warps(1, 64);
  C[n] = x[n % 64];""",
    "an element of C passed from a group to the other": """
  if (group == 0) C[n] = A[n];
  gg_sync_warps(1, 128);
  if (group == 1) C[n] = C[n - 64];""",
}


@pytest.mark.by_default("shuffled-a group that waits*", "shuffled-what a warp knows*")
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("order", ALL_ORDERS)
def test_what_barriers_order_is_no_race(name: str, order: str) -> None:
    run(RIGHT[name], order)


READS_OF_THREE = """
  __shared__ float x[32];
  if (n < 32) x[n] = A[n];
  __syncthreads();
  if (n >= 32) C[n] = x[n % 32];
  if ({who}) gg_sync_warps(1, {count});
  if (n < 32) C[n] = x[n] = 0.0f;"""
"""Warps 1 to 3 read what warp 0 overwrites."""
RACES = {
    "groups that wait each for itself": """
  __shared__ float x[128];
  x[n] = A[n];
  gg_sync_warps(1 + group, 64);
  C[n] = x[127 - n];""",
    "the first barrier of a group dropped": TURNS.replace(
        "gg_sync_warps(1 + group, 64);", "if (group == 0) gg_sync_warps(1, 64);", 1
    ),
    "the second barrier of a group dropped": TURNS.replace(
        "63];\n    gg_sync_warps(1 + group, 64);", "63];\n    if (group == 1) gg_sync_warps(2, 64);"
    ),
    "the block's barrier for a group's": TURNS.replace(
        "__syncthreads();", "gg_sync_warps(3 + group, 64);"
    ),
    "a third warp that asks too early": RIGHT[
        "what a warp knows of another, a third learns from it"
    ].replace("if (n < 64) gg", "if (n >= 96) x[n - 96] = 0.0f;\n  if (n < 64) gg"),
    "a write that waits for none of three readers": READS_OF_THREE.format(who="false", count=64),
    "a write that waits for one of three readers": READS_OF_THREE.format(who="n < 64", count=64),
    "a write that waits for two of three readers": READS_OF_THREE.format(who="n < 96", count=96),
    "a write that waits for two others of them": READS_OF_THREE.format(
        who="n < 64 || n >= 96", count=96
    ),
    "a shuffle for a barrier of the warp": RIGHT[
        "what a lane knows of its warp, another warp learns"
    ].replace("__syncwarp();", "if (gg_shuffle_xor(A[n], 1) < 0) return;"),
}


@pytest.mark.by_default(
    "issuers last-groups that wait each*", "issuers last-the block's barrier f*"
)
@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("order", ALL_ORDERS)
def test_finds_a_race_whatever_the_order(name: str, order: str) -> None:
    assert finding(RACES[name], order).kind == "race"


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_a_write_that_waits_for_all_readers_is_no_race(order: str) -> None:
    run(READS_OF_THREE.format(who="true", count=128), order)


@pytest.mark.by_default("ascending", "shuffled")
@pytest.mark.parametrize("order", ALL_ORDERS)
def test_finds_two_groups_that_share_a_barrier(order: str) -> None:
    body = TURNS.replace("gg_sync_warps(1 + group, 64)", "gg_sync_warps(1, 64)")
    found = finding(body, order)
    assert found.kind in ("wrong barrier", "race")
    if found.kind == "wrong barrier":
        reused = "barrier 1 is used again by threads that have not waited for its last use"
        assert found.detail == reused


LUCK = """
  __shared__ float x[32];
  if (n < 32) {
    gg_sync_warps(1, 64);
    x[n] = A[n];
  } else if (n < 64) {
    gg_sync_warps(1, 64);
  } else {
    gg_sync_warps(2, 64);
    gg_sync_warps(2, 64);
  }
  if (n >= 96) C[n] = x[n % 32];"""
"""The last warp reads what the first has written one barrier earlier, by luck alone."""


@pytest.mark.proof
def test_only_strict_priorities_show_values_of_luck() -> None:
    want = np.where(np.arange(THREADS) < 96, 0, np.arange(THREADS) - 95)
    for order in ORDERS:
        assert all((run(LUCK, order, seed=i, checked=False) == want).all() for i in range(8))
    by_priority = [run(LUCK, "by priority", seed=i, checked=False) for i in range(8)]
    assert any((got != want).any() for got in by_priority)
    for order in ALL_ORDERS:
        assert finding(LUCK, order).kind == "race"


def test_warps_that_issue_copies_go_last_in_an_order() -> None:
    issue = """
    __shared__ alignas(16) float y[128];
    gg_copy_async_16(&y[n * 4], &A[n * 4], 16);
    gg_commit_group();
    gg_wait_group<0>();"""
    body = LUCK.replace("if (n < 32) {", f"if (n < 32) {{{issue}", 1)
    late = run(body, "issuers last", checked=False)
    assert (late[:96] == 0).all() and np.isnan(late[96:]).all()
    assert (run(LUCK, "issuers last", checked=False)[96:] == np.arange(1, 33)).all()
