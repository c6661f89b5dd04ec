"""The ring of TMA goes on from tile to tile of a persistent block: right in every order
with any number of blocks, and what goes wrong at the border of two tiles is found."""

from __future__ import annotations

import functools
from itertools import product

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS, Case
from gemmgen.expand import expand
from gemmgen.lower import lower
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import launcher
from gemmgen.proof.calls import Caller
from gemmgen.proof.equivalence import result_of
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

ENGINE = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=16 n=32 k=8
    cache_shared A B
    register_block m=2 n=4
    double_buffer A B stages=3
    async_copy A B via=tma
    launch_bounds blocks=1
    persistent
"""
TWO, AHEAD = " stages=3", "double_buffer A.register B.register\n"
ROLES = "warp_specialize producers=1"
TO_C = ("cache_shared A B", "cache_shared A B C")
BATCHES = ("C[m, n] = A[k, m] * B[k, n]", "C[b, m, n] = A[b, k, m] * B[k, n]")
SCHEDULES = {
    "three stages": ENGINE,
    "two stages": ENGINE.replace(TWO, ""),
    "reads ahead": ENGINE + AHEAD,
    "reads ahead in two stages": ENGINE.replace(TWO, "") + AHEAD,
    "slices of C": ENGINE.replace(*TO_C),
    "the ragged step first": ENGINE + "residue k=first",
    "batches": ENGINE.replace(*BATCHES),
    "a producer": ENGINE + ROLES,
    "a producer, two stages": ENGINE.replace(TWO, "") + ROLES,
    "a producer, reads ahead": ENGINE + AHEAD + ROLES,
    "a producer, reads ahead in two stages": ENGINE.replace(TWO, "") + AHEAD + ROLES,
    "a producer, slices of C": ENGINE.replace(*TO_C) + ROLES,
    "a producer, the ragged step first": ENGINE + "residue k=first\n" + ROLES,
    "a producer, batches": ENGINE.replace(*BATCHES) + ROLES,
}


@functools.cache
def emitted(name: str) -> Emitted:
    lines = (line.strip() for line in SCHEDULES[name].strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def cases(name: str, k: int) -> list[Case]:
    """3 x 2 tiles and a sum of ``k``, on 1 to 3 multiprocessors, in every order."""
    batches = (2,) if name.endswith("batches") else ()
    runs = enumerate(product((*ORDERS, *STRICT_ORDERS), BOX_LANDINGS))
    return [
        Case((35, 56, k, *batches), "normal", 0.7, -1.0, 4 * (i % 3), order, landing)
        for i, (order, landing) in runs
    ]


def complaint(name: str, k: int, text: str | None = None) -> str | None:
    """What checked runs find wrong."""
    known = emitted(name)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    try:
        found = launcher.complaint(known, text or known.text, kernel)
        caller = Caller(known)
        for each in cases(name, k):
            found = found or caller.complaint(each, kernel)
        return found
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


STEPS = (27, 8, 17, 0)
"""Sums of four, one, three and no steps: a tile ends at any stage."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_is_right(name: str) -> None:
    known, blocks = emitted(name), set[int]()
    for k in STEPS:
        assert complaint(name, k) is None
        for each in cases(name, k)[:3]:
            letters = zip(known.program.problem.letters, each.shape, strict=True)
            extents = {known.interface.extent(letter): size for letter, size in letters}
            blocks.add(known.interface.grid(extents, each.multiprocessors))
            found = result_of(lower(expand(known.program)), known.program.problem, each)
            assert hasattr(found, "c"), (each, found)
    assert blocks == {1, 2, 3}


FULL = "while (!gg_try_wait(full[stage], phase)) {}"
EMPTY = "while (!gg_try_wait(empty[stage], phase)) {}"
TURN = "if (stage == STAGES - 1) phase ^= 1;"
ARRIVE = "if (threadIdx.x % 32 == 0) gg_arrive(empty[stage]);"
WALK = "own_tile < tiles; own_tile += gridDim.x"
BORDER = "// zero the accumulators"
ZERO = f"stage = 0;\n            {BORDER}"
STEP = "tile_k < K; tile_k += BK"
PLANTS = {
    "the stage restarts with each tile": ("three stages", BORDER, ZERO, 1),
    "the phase restarts with each tile": ("three stages", BORDER, f"phase = 0;\n{BORDER}", 1),
    "the first copies go to the first stages": (
        "three stages",
        "(stage + ahead) % STAGES",
        "ahead",
        1,
    ),
    "the first copy goes to the first stage": (
        "two stages",
        "gg_load_box_2d(A_shared[stage], A",
        "gg_load_box_2d(A_shared[0], A",
        1,
    ),
    "the first copies begin at the stage that was read last": (
        "three stages",
        "(stage + ahead) % STAGES",
        "(stage + ahead + STAGES - 1) % STAGES",
        1,
    ),
    "no turn after the wait for the first fragments": ("reads ahead", TURN, "", 1),
    "the first fragments of the first stage": (
        "reads ahead",
        "A_frag[0][reg_m] = A_shared[stage][0]",
        "A_frag[0][reg_m] = A_shared[0][0]",
        1,
    ),
    "no barrier between tiles": (
        "reads ahead",
        "__syncthreads();\n\n        // the epilogue",
        "// the epilogue",
        1,
    ),
    "barriers initialized for each tile": (
        "three stages",
        BORDER,
        "if (tid == 0) for (int s = 0; s < STAGES; ++s) gg_init_barrier(full[s], 1);\n"
        f"__syncthreads();\n{BORDER}",
        1,
    ),
    "a copy that no tile waits for": ("three stages", "next_k < K)", "next_k < K + BK)", 2),
    "the consumers' stage restarts": ("a producer", BORDER, ZERO, 1),
    "the consumers' phase restarts": ("a producer", BORDER, f"phase = 0;\n{BORDER}", 1),
    "the producer's stage restarts": (
        "a producer",
        f"for (int tile_k = 0; {STEP}) {{\n                    while (!gg_try_wait(empty",
        f"stage = 0;\nfor (int tile_k = 0; {STEP}) {{\n while (!gg_try_wait(empty",
        1,
    ),
    "the producer's phase restarts": (
        "a producer",
        f"for (int tile_k = 0; {STEP}) {{\n                    while (!gg_try_wait(empty",
        f"phase = 1;\nfor (int tile_k = 0; {STEP}) {{\n while (!gg_try_wait(empty",
        1,
    ),
    "the producer a tile short": ("a producer", WALK, WALK.replace("tiles;", "tiles - 1;"), 1),
    "the producer a tile long": (
        "a producer",
        WALK,
        WALK.replace("tiles;", "tiles + (int)gridDim.x;"),
        1,
    ),
    "the consumers a tile short": ("a producer", WALK, WALK.replace("tiles;", "tiles - 1;"), 2),
    "the producer copies its first tile again": (
        "a producer",
        "tile_at(own_tile, blocks_n",
        "tile_at((int)blockIdx.x, blocks_n",
        1,
    ),
    "the last step of a tile releases nothing": (
        "a producer",
        ARRIVE,
        ARRIVE.replace("% 32 == 0", "% 32 == 0 && tile_k + BK < K"),
        1,
    ),
    "the last step of a tile releases nothing, reading ahead": (
        "a producer, reads ahead",
        ARRIVE,
        ARRIVE.replace("% 32 == 0", "% 32 == 0 && tile_k + BK < K"),
        1,
    ),
    "a stage is released again after the loop": (
        "a producer",
        "// the epilogue",
        f"__syncwarp();\n{ARRIVE}\n// the epilogue",
        1,
    ),
    "the epilogue reads a stage that is filled again": (
        "a producer",
        "// the epilogue",
        "acc[0][0] = fmaf(0.0f, A_shared[stage][0][thread_m], acc[0][0]);\n// the epilogue",
        1,
    ),
    "the epilogue reads the stage that was released last": (
        "a producer",
        "// the epilogue",
        "acc[0][0] = fmaf(0.0f, A_shared[stage > 0 ? stage - 1 : STAGES - 1][0][thread_m], "
        "acc[0][0]);\n// the epilogue",
        1,
    ),
    "the first fragments without a wait": ("a producer, reads ahead", FULL, "", 1),
    "no wait for an empty stage after the first tile": (
        "a producer",
        EMPTY,
        f"if (own_tile == (int)blockIdx.x) {EMPTY}",
        1,
    ),
    "no barrier of the consumers before the slice of the next tile": (
        "a producer, slices of C",
        "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);",
        "if (reg_m > 0) gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);",
        1,
    ),
    "the block's barrier in a role": (
        "a producer, slices of C",
        "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);",
        "__syncthreads();",
        1,
    ),
    "a block for each tile": (
        "a producer",
        "tiles < multiprocessors ? tiles : multiprocessors",
        "tiles",
        1,
    ),
    "every block begins at tile 0": ("a producer", "own_tile = blockIdx.x", "own_tile = 0", 2),
}


@pytest.mark.by_default("the producer a tile short")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth = PLANTS[plant]
    changed = planted(emitted(name).text, old, new, nth)
    assert any(complaint(name, k, changed) is not None for k in STEPS)
