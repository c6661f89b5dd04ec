"""Blocks that walk over several tiles: right with any number of blocks, and what goes wrong between
two tiles is found."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.expand import expand
from gemmgen.lower import lower
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import launcher
from gemmgen.proof.calls import Caller
from gemmgen.proof.equivalence import result_of
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

STAGED = """
    gemm C[m, n] = A[k, m] * B[k, n]
    tile m=16 n=16 k=8
    cache_shared A B
    double_buffer A B stages=3
    launch_bounds blocks=1
    persistent
"""
SCHEDULES = {
    "cp_async": STAGED + "register_block m=2 n=2\nasync_copy A B via=cp_async",
    "registers": STAGED,
    "reads ahead": STAGED + "register_block m=2 n=2\ndouble_buffer A.register B.register",
    "one stage": "tile m=16 n=16 k=8\ncache_shared A B\npersistent",
    "naive": "persistent",
    "batches": """
        gemm C[b, m, n] = A[b, m, k] * B[k, n]
        tile m=16 n=16 k=8
        cache_shared A B
        persistent""",
    "a slice of C": "bind x=m y=n\ntile m=16 n=16\ncache_shared C\npersistent",
    "slices of C": STAGED + "register_block m=2 n=2\ncache_shared C\nvectorize C width=4",
    "bands": STAGED + "raster group=2",
    "tensor_core": """
        dtype A=f16 B=f16
        tile m=32 n=32 k=16
        cache_shared A B
        warp_tile m=16 n=32
        tensor_core via=wmma
        double_buffer A B
        persistent""",
}


@functools.cache
def emitted(name: str) -> Emitted:
    lines = (line.strip() for line in SCHEDULES[name].strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def case(name: str, pad: int) -> Case:
    """3 x 4 tiles, on a GPU with another number of multiprocessors for each ``pad`` of 0, 1 and 2.
    The last of the 4 steps along k reads the stage that the next tile's first copies fill."""
    batches = (3,) if name == "batches" else ()
    times = 2 if name == "tensor_core" else 1
    return Case((35 * times, 55 * times, 29, *batches), "normal", 0.7, -1.0, pad)


def complaint(name: str, each: Case, text: str | None = None) -> str | None:
    """What a checked run finds wrong."""
    known = emitted(name)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    try:
        return launcher.complaint(known, text or known.text, kernel) or Caller(known).complaint(
            each, kernel
        )
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_any_number_of_blocks_computes_every_tile(name: str) -> None:
    known, blocks = emitted(name), set[int]()
    for pad in range(3):
        each = case(name, pad)
        letters = zip(known.program.problem.letters, each.shape, strict=True)
        extents = {known.interface.extent(letter): size for letter, size in letters}
        blocks.add(known.interface.grid(extents, each.multiprocessors))
        assert complaint(name, each) is None
        found = result_of(lower(expand(known.program)), known.program.problem, each)
        assert hasattr(found, "c"), found
    assert blocks == {known.interface.resident * count for count in (1, 2, 3)}


ZERO = "acc[reg_m][reg_n] = 0.0f;"
STRIDE = "own_tile += gridDim.x"
PLANTS = {
    "the accumulators zeroed at the first tile alone": (
        "cp_async",
        ZERO,
        "if (own_tile < (int)gridDim.x) " + ZERO,
    ),
    "the accumulators of tensor cores zeroed at the first tile alone": (
        "tensor_core",
        "acc[frag_m][frag_n][reg] = 0.0f;",
        "if (own_tile < (int)gridDim.x) acc[frag_m][frag_n][reg] = 0.0f;",
    ),
    "no barrier between tiles": (
        "cp_async",
        "__syncthreads();\n\n        // the epilogue",
        "// the epilogue",
    ),
    "no barrier between tiles whose fragments are read ahead": (
        "reads ahead",
        "__syncthreads();\n\n        // the epilogue",
        "// the epilogue",
    ),
    "no barrier before the slice of C of the next tile": (
        "a slice of C",
        "// the epilogue\n        __syncthreads();\n",
        "// the epilogue\n",
    ),
    "copies in flight at the end of a tile": ("cp_async", "gg_wait_group<0>();", ""),
    "tiles missed": ("bands", STRIDE, STRIDE + " + 1"),
    "tiles counted twice": ("bands", STRIDE, STRIDE + " - (gridDim.x > 1)"),
    "every block begins at tile 0": ("bands", "own_tile = blockIdx.x", "own_tile = 0"),
    "the last tile missed": ("bands", "own_tile < tiles;", "own_tile < tiles - 1;"),
    "a tile's number for its matrix's": ("batches", "own_tile % matrix_tiles", "own_tile"),
    "matrices not moved back": ("batches", "A -= ", "A -= 0 * "),
    "a thread that leaves with its tiles": (
        "naive",
        "if (m < M && n < N) {",
        "if (m >= M || n >= N) return;\n {",
    ),
    "a block for each tile": (
        "bands",
        "tiles < multiprocessors ? tiles : multiprocessors",
        "tiles",
    ),
    "blocks without tiles": (
        "bands",
        "tiles < multiprocessors ? tiles : multiprocessors",
        "multiprocessors",
    ),
    "another device asked": ("bands", "cudaGetDevice(&device)", "cudaSuccess"),
    "a device's error dropped": ("bands", "    if (error != cudaSuccess) return error;\n", ""),
}


@pytest.mark.by_default("tiles missed")
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new = PLANTS[plant]
    changed = planted(emitted(name).text, old, new)
    assert any(complaint(name, case(name, pad), changed) for pad in (1, 2))


def test_there_are_as_many_blocks_as_a_gpu_holds_and_no_more_than_tiles() -> None:
    interface = emitted("bands").interface
    extents = {"M": 35, "N": 55}
    assert [interface.grid(extents, count) for count in (1, 5, 12, 13, 132)] == [1, 5, 12, 12, 12]
    two = replace(interface, resident=2)
    assert [two.grid(extents, count) for count in (1, 5, 6, 7)] == [2, 10, 12, 12]
    assert interface.grid({"M": 0, "N": 55}, 132) == 0


def test_more_tiles_than_a_number_and_a_stride_hold_are_refused() -> None:
    interface = emitted("bands").interface
    at_most = {"M": 16 * 2**15, "N": 16 * 2**15}
    assert not interface.is_too_large(at_most)
    assert interface.is_too_large({**at_most, "N": 16 * 2**15 + 1})
    assert not replace(interface, resident=0).is_too_large({**at_most, "N": 16 * 2**15 + 1})
