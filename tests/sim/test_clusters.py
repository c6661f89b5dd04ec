"""Blocks of a cluster run together: right kernels in every order, and mistakes are found."""

from __future__ import annotations

import re

import numpy as np
import pytest
from box_kernels import ALL_ORDERS, Shape, clustered, compiled, complaint, runs, text
from cluster_plants import END, PLANTS
from functions import with_functions

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import compiler, sass
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import F32
from gemmgen.sim.failures import CompileFailure, KernelFault
from gemmgen.sim.findings import Finding
from gemmgen.sim.launcher_calls import LauncherCall
from gemmgen.sim.run import compile_kernel
from gemmgen.sim.unit import BEGIN
from gemmgen.sim.unit import END as KERNEL_END

CLUSTERS = [(1, 2), (2, 2), (4, 2)]
SHAPES: tuple[Shape, ...] = ((35, 37, 43), (70, 20, 60), (1, 1, 1))


@pytest.mark.by_default("cluster1-False")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_is_right_in_all_orders_and_landings(cluster: tuple[int, int], checked: bool) -> None:
    """Also where the last cluster has tiles beyond C."""
    kernel = compiled("cluster", clustered(*cluster), checked=checked, cluster=cluster)
    for shape in SHAPES:
        for order, landing in runs():
            wrong = complaint(kernel, "cluster", shape, order, landing)
            assert wrong is None, (shape, order, landing, wrong)


@pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))
@pytest.mark.by_default("cluster1")
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_compiles_for_a_gpu_that_has_clusters(cluster: tuple[int, int]) -> None:
    assert compiler.compile_text(clustered(*cluster), "sm_90a").spills == 0


@pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))
@pytest.mark.proof
def test_a_step_has_no_fence_of_the_whole_gpu() -> None:
    """A remote arrival with ``.release.cluster`` is a MEMBAR of the GPU, a wait with
    ``.acquire.cluster`` an invalidation of the L1 cache: the cluster's barrier alone has these."""
    try:
        sass.tool()
    except CannotCheck as missing:
        pytest.skip(str(missing))
    kernel = text("cluster")
    wanted = fences(whole("  gg_sync_cluster();\n  gg_sync_cluster();"))
    assert fences(kernel) == wanted
    remote, wait = "arrive.shared::cluster.b64", "try_wait.parity.shared::cta.b64"
    assert remote in kernel and wait in kernel
    assert fences(kernel.replace(remote, f"arrive.release.cluster{remote[6:]}")) > wanted
    acquires = "try_wait.parity.acquire.cluster.shared::cta.b64"
    assert fences(kernel.replace(wait, acquires)) > wanted


def fences(kernel: str) -> int:
    code = sass.disassemble(compiler.compile_text(kernel, "sm_90a").cubin)
    return sum(one.opcode in ("MEMBAR.ALL.GPU", "CCTL.IVALL") for one in code)


@pytest.mark.proof
def test_a_block_that_may_end_too_early_is_found_in_every_order() -> None:
    assert END in text("cluster")
    kernel = compiled("cluster", text("cluster").replace(END, "    }\n}"))
    for order, landing in runs():
        with pytest.raises(KernelFault, match=r"block ended: empty.* whose threads may all"):
            complaint(kernel, "cluster", (64, 20, 60), order, landing)


def sentence(plant: str, pattern: str) -> str:
    """Of the first finding whose sentence has the pattern."""
    old, new = PLANTS[plant].old, PLANTS[plant].new
    kernel = compiled("cluster", text("cluster").replace(old, new))
    seen: list[str] = []
    for order, landing in runs():
        with pytest.raises(KernelFault) as raised:
            complaint(kernel, "cluster", (64, 20, 60), order, landing)
        seen += [found.text() for found in raised.value.findings]
    return next((one for one in seen if re.search(pattern, one)), f"{seen}")


@pytest.mark.proof
def test_a_finding_says_whose_memory_it_is_about() -> None:
    pattern = r" \(of block (\d)\) in block (?!\1).*; thread \(\d+, 0\) of block \1 reads it, at"
    got = sentence("a stage released to its own block twice", pattern)
    assert got.startswith("race: thread (0, 0) has TMA write B_shared[")
    pattern = "full.0. of block 1 is not a barrier: it has not been initialized"
    assert sentence("the first barrier of the cluster dropped", pattern).startswith("wrong barrier")


def test_a_deadlock_names_blocks_and_which_threads_they_wait_for() -> None:
    got = sentence("a slice for its own block alone", "deadlock")
    for part in (
        "1 thread of block 1 waits",
        "31 threads of block 1 wait",
        "64 threads of block 0",
    ):
        assert part in got, got
    assert "for full[0], parity 0 (to come: 0 of 1 arrivals, 512 bytes)" in got


# Kernels without TMA, of 64 threads and two blocks.

A = Param("A", "tensor", ("n",))
C = Param("C", "tensor", ("n",), written=True, read=False)
THREADS = 64
HEAD = f"__cluster_dims__(2) __launch_bounds__({THREADS})"


def interface(cluster: int = 2) -> Interface:
    params = (Param("N", "extent"), A, C)
    sizes = (("N", THREADS),)
    return Interface("pair", params, (THREADS, 1), sizes, (), 0, 0, (), cluster=(cluster,))


def whole(body: str, head: str = HEAD) -> str:
    kernel = (
        BEGIN,
        f'extern "C" __global__ void {head}',
        "pair(int N, const float *__restrict__ A, float *C) {",
        "  [[maybe_unused]] const int thread = threadIdx.x, n = blockIdx.x * 64 + thread;",
        "  if (N < 0) C[n] = A[n];",
        body,
        "}",
        KERNEL_END,
    )
    return with_functions("\n".join(kernel))


def run(
    body: str, order: str = "ascending", *, blocks: int = 4, checked: bool = True, seed: int = 3
) -> F32:
    """What the body makes of A = 1, 2, ..."""
    kernel = compile_kernel(whole(body), interface(), checked=checked)
    count = blocks * THREADS
    arrays = {"A": np.arange(1, count + 1, dtype=np.float32), "C": np.zeros(count, np.float32)}
    kernel.run({"N": count, **arrays}, order=order, seed=seed)
    return arrays["C"]


def finding(body: str, order: str = "ascending") -> Finding:
    with pytest.raises(KernelFault) as raised:
        run(body, order, blocks=2)
    return raised.value.findings[0]


EXCHANGE = """
  __shared__ float x[64];
  x[thread] = A[n];
  __syncthreads();
  C[n] = x[63 - thread];
  gg_sync_cluster();
  const float other = C[n ^ 64];
  gg_sync_cluster();
  if (gg_cluster_rank() == 0) x[thread] = other;
  __syncthreads();
  if (gg_cluster_rank() == 0) C[n] = x[63 - thread] - A[n];"""
"""Through global memory; shared arrays of the two have the same addresses."""


@pytest.mark.by_default("*-True")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("order", ALL_ORDERS)
def test_the_barrier_of_a_cluster_orders_its_blocks(order: str, checked: bool) -> None:
    pairs = np.arange(1, 4 * THREADS + 1, dtype=np.float32).reshape(2, 2, THREADS)
    want = np.stack([np.full((2, THREADS), 64.0, np.float32), pairs[:, 1, ::-1]], axis=1)
    assert (run(EXCHANGE, order, checked=checked) == want.ravel()).all()


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_finds_a_race_between_blocks(order: str) -> None:
    body = EXCHANGE.replace("gg_sync_cluster();", "__syncthreads();", 1)
    found = finding(body, order)
    assert found.kind in ("race", "never written") and found.name == "C", found.text()
    body = EXCHANGE.replace("  gg_sync_cluster();\n  if", "  if")
    found = finding(body, order)
    assert found.kind == "race" and found.name == "C", found.text()
    assert found.other is not None and found.other.block != found.access.block


def test_the_barrier_does_not_wait_for_threads_that_have_left() -> None:
    body = """
  if (gg_cluster_rank() == 1) return;
  gg_sync_cluster();
  C[n] = A[n];"""
    for order in ALL_ORDERS:
        got = run(body, order).reshape(4, THREADS)
        assert (got[0] == np.arange(1, 65)).all() and not got[1].any()


def test_votes_are_those_of_the_block() -> None:
    body = """
  const int votes = __syncthreads_or(gg_cluster_rank() == 1 && thread == 5);
  C[n] = __syncthreads_or(0) * 2 + votes;"""
    for order in ALL_ORDERS:
        assert (run(body, order).reshape(2, 2, THREADS) == np.array([[0], [1]])).all()


WRONG = {
    "some threads pass the block's barrier by": (
        "if (gg_cluster_rank() == 0 || thread < 32) __syncthreads(); gg_sync_cluster();",
        "deadlock",
        "64 threads of block 0 wait",
    ),
    "some threads leave before the block's barrier": (
        "if (gg_cluster_rank() == 1 && thread < 32) return; __syncthreads();",
        "divergent barrier",
        "",
    ),
    "a block that is not there": (
        "__shared__ unsigned long long full; if (thread == 0) gg_init_barrier(full, 1);"
        " gg_sync_cluster(); if (thread == 0) gg_arrive_at(full, 2); gg_sync_cluster();",
        "wrong barrier",
        "mapa to block 2 of a cluster of 2",
    ),
    "barriers past those of the block before": (
        "__shared__ unsigned long long full; if (n == 0) gg_init_barrier(full, 1);"
        " gg_sync_cluster(); if (n == 0) gg_arrive_at(full, 1); gg_sync_cluster();",
        "wrong barrier",
        "full[0] of block 1 is not a barrier",
    ),
}


@pytest.mark.by_default("a block that is not there")
@pytest.mark.parametrize("name", WRONG)
def test_finds(name: str) -> None:
    body, kind, detail = WRONG[name]
    for order in ALL_ORDERS:
        found = finding(body, order)
        assert found.kind == kind and detail in found.text(), found.text()


def test_dimensions_in_the_text_are_the_interfaces() -> None:
    with pytest.raises(CompileFailure, match="the cluster's dimensions are the blocks of a clust"):
        compile_kernel(whole(EXCHANGE), interface(4))
    with pytest.raises(CompileFailure, match="the cluster's dimensions are the blocks of a clust"):
        compile_kernel(whole(EXCHANGE, ""), interface())


@pytest.mark.parametrize(("cluster", "refusal"), [(16, "at most 8 blocks"), (8, None)])
def test_clusters_have_up_to_eight_blocks(cluster: int, refusal: str | None) -> None:
    kernel = compile_kernel(whole("", HEAD.replace("(2)", f"({cluster})")), interface(cluster))
    arrays = {name: np.zeros(64 * cluster, np.float32) for name in "AC"}
    if refusal is None:
        kernel.run({"N": 64 * cluster, **arrays})
        return
    with pytest.raises(KernelFault, match=refusal):
        kernel.run({"N": 64 * cluster, **arrays})


LAUNCHER = """
extern "C" cudaError_t launch_pair(int N, const float *A, float *C, cudaStream_t stream)
{
    pair<<<N / 64, 64, 0, stream>>>(N, A, C);
    return cudaGetLastError();
}
"""


def test_a_grid_that_is_no_multiple_of_the_cluster_is_not_launched() -> None:
    kernel = compile_kernel(whole(EXCHANGE) + LAUNCHER, interface())
    calls = [LauncherCall({"N": 64 * blocks, "A": 16, "C": 16}) for blocks in (2, 3, 4)]
    errors = [called.error for called in kernel.call_launcher(calls)]
    assert errors == [0, 912, 0]
