"""Clusters of blocks, launched from Python: right at every edge, and no more than run at a time."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import device
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source

cp = pytest.importorskip("cupy")

SHAPE = """\
gemm            C[m, n] = A[k, m] * B[k, n]
target          sm_90a
tile            m=64 n=64 k=16
cache_shared    A B
register_block  m=4 n=8
double_buffer   A B stages=3
async_copy      A B via=tma
warp_specialize producers=1
"""
CLUSTERS = ("m=2", "n=2", "m=2 n=2", "m=4 n=2", "n=8")


@pytest.fixture(autouse=True)
def hopper() -> None:
    if device.capability(cp.cuda.runtime.getDevice()) != (9, 0):
        pytest.skip("the kernels are of sm_90a")


def kernel(*lines: str) -> Kernel:
    return Kernel.of(compile_source(Source(SHAPE + "".join(f"{line}\n" for line in lines))))


def drawn(rows: int, columns: int, seed: int):
    """Small integers, in rows of a multiple of 16 bytes."""
    values = np.random.default_rng([seed, rows]).integers(-4, 5, (rows, -(-columns // 4) * 4))
    return cp.asarray(values.astype(np.float32))[:, :columns]


@pytest.mark.parametrize("walks", ("", "persistent"))
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_results_are_exact_at_every_edge(cluster: str, walks: str) -> None:
    run = kernel(f"cluster {cluster}", *filter(None, [walks]))
    for m, n, k in ((64, 64, 16), (1, 1, 1), (127, 131, 257), (2100, 1900, 65), (65, 60, 0)):
        a, b = drawn(k, m, 0), drawn(k, n, 1)
        assert (run(a, b).get() == a.get().T @ b.get()).all(), (m, n, k)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_persistent_clusters_run_all_at_once(cluster: str) -> None:
    """Each multiprocessor has room for some blocks, and each GPC for whole clusters."""
    run = kernel(f"cluster {cluster}", "persistent")
    blocks = run.interface.cluster_blocks
    held = run._planner._held * blocks
    room = device.multiprocessors(run.device)
    assert room // 2 <= held and held <= 2048 // run.interface.threads * room


SWIZZLED = """\
gemm            C[m, n] = A[m, k] * B[n, k]
dtype           A=bf16 B=bf16 C=f32
target          sm_90a
tile            m=128 n=184 k=64
cache_shared    A B
warp_tile       m=64 n=184
tensor_core     via=wgmma
swizzle         A B
double_buffer   A B stages=3
async_copy      A B via=tma
warp_specialize producers=1 consumers=2
"""


@pytest.mark.parametrize("cluster", ("m=2", "m=4", "m=8", "m=4 n=2"))
def test_shares_of_swizzled_rows_begin_anywhere_in_the_pattern(cluster: str) -> None:
    """TMA permutes by bits of addresses: shares of 92, 46 or 23 rows of 128 bytes lie as the whole
    tile does, though the pattern repeats after 8 rows."""
    run = Kernel.of(compile_source(Source(f"{SWIZZLED}cluster {cluster}\n")))
    draw = np.random.default_rng(7)
    for m, n, k in ((128, 184, 64), (1100, 740, 328), (65, 190, 136)):
        a, b = (draw.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (m, n))
        bits = (cp.asarray((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b))
        assert (run(*bits).get() == a @ b.T).all(), (m, n, k)
