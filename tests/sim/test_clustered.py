"""Blocks of a cluster that share tiles: emitted kernels are right in every order, and what goes
wrong between blocks is found."""

from __future__ import annotations

import functools
from itertools import product

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.gpu import compiler
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller, landings_of, orders_of
from gemmgen.proof.cpu import first_complaint
from gemmgen.proof.shapes import fit
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

HEAD = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=32 n=64 k=8
    cache_shared A B
    register_block m=4 n=8
    vectorize C width=4
    double_buffer A B stages=3
    async_copy A B via=tma
    warp_specialize producers=1
"""
CLUSTERS = ("m=2", "n=2", "m=2 n=2", "m=4 n=2")
FOUR = HEAD + "cluster m=2 n=2\n"
SCHEDULES = {
    **{cluster: f"{HEAD}cluster {cluster}\n" for cluster in CLUSTERS},
    "two stages": FOUR.replace(" stages=3", ""),
    "reads ahead": FOUR + "double_buffer A.register B.register",
    "rows along m": FOUR.replace("A[k, m]", "A[m, k]"),
    "several boxes": HEAD.replace("n=64", "n=288").replace("m=4 n=8", "m=8 n=12") + "cluster m=2",
    "bands": FOUR + "raster group=2",
    "squares": FOUR + "raster group=2 order=hilbert",
    "hints": FOUR + "l2 A evict=last\nl2 B evict=first",
    "the ragged step first": FOUR + "residue k=first",
    "C by TMA": FOUR.replace("A B\n", "A B C\n").replace("A B via", "A B C via"),
    "batches": FOUR.replace("C[m, n] = A[k, m] * B[k, n]", "C[b, m, n] = A[b, k, m] * B[k, n]"),
    "overlaps": FOUR + "overlap_launch",
    "persistent overlaps": FOUR + "persistent\noverlap_launch",
    "persistent": FOUR + "persistent\nraster group=2",
    "persistent batches": FOUR.replace("C[m, n] = A[k", "C[b, m, n] = A[b, k") + "persistent",
    "whole tiles": FOUR + "assume M % 32 == 0\nassume N % 64 == 0",
    "whole clusters": FOUR + "assume M % 64 == 0\nassume N % 128 == 0",
}
SHAPES = ((35, 68, 44), (1, 1, 1), (100, 140, 20), (40, 70, 0))
"""With tiles beyond C in some clusters, along m, along n and along both."""
WHOLE = {"whole tiles": ((32, 64, 20), (96, 192, 9)), "whole clusters": ((64, 128, 20),)}


@functools.cache
def emitted(name: str) -> Emitted:
    lines = (line.strip() for line in SCHEDULES[name].strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def complaint(name: str, text: str | None = None) -> str | None:
    """What is first found in runs of a text, which is launched by its launcher."""
    kernel = emitted(name)
    shapes = WHOLE.get(name, SHAPES)
    batches = (3,) if name.endswith("batches") else ()
    cases = [
        Case(fit(kernel, (*shape, *batches)), "normal", 0.7, -1.0, 4, order=order, landing=landing)
        for shape in shapes
        for landing, order in product(landings_of(kernel), orders_of(kernel))
    ]
    return first_complaint(Caller(kernel), text or kernel.text, cases, warn=False)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_is_right_in_all_orders_and_landings(name: str) -> None:
    assert complaint(name) is None


RELEASE = "if (threadIdx.x % 32 < CLUSTER) gg_arrive_at(empty[stage], threadIdx.x % 32);"
ARRIVALS = "CLUSTER * (CONSUMERS / 32)"
LAST = "    gg_sync_cluster();\n}\n"
FIRST = "    gg_sync_cluster();\n\n    //"
FULL, EMPTY = (f"while (!gg_try_wait({name}[stage], phase)) {{}}" for name in ("full", "empty"))
STEPS = "for (int tile_k = 0; tile_k < K; tile_k += BK)"
OWN, TILE = "const int cluster = own_tile / CLUSTER", "int tile_m, tile_n;"
B_PLACE, B_ROWS = "B_shared[stage][B_k]", "tile_k + B_k"
PLANTS = {
    "released to its own block": (
        "m=2",
        RELEASE,
        "if (threadIdx.x % 32 == 0) gg_arrive_at(empty[stage], blockIdx.x % CLUSTER);",
    ),
    "released to the first block, twice": (
        "m=2",
        RELEASE,
        RELEASE.replace("stage], threadIdx.x % 32", "stage], 0"),
    ),
    "arrivals of one block": ("m=2", ARRIVALS, "CONSUMERS / 32"),
    "ends alone": ("m=2", LAST, "}\n"),
    "begins alone": ("m=2", FIRST, "    __syncthreads();\n\n    //"),
    "the bytes of its own share": ("m=2", "STAGE_BYTES);", "STAGE_BYTES / 2);"),
    "a grid of clusters": ("m=2", " * CLUSTER;\n    if", ";\n    if"),
    "boxes of whole tiles": ("m=2", "{BN, BK / CLUSTER_M}", "{BN, BK}"),
    "multicast to the first block": ("m=2", "B_BLOCKS);", "1);"),
    "multicast to a block that is not there": ("m=2", "B_BLOCKS);", "B_BLOCKS << 1);"),
    "one share from the other's rows": ("m=2", B_ROWS, "tile_k + BK / CLUSTER_M - B_k"),
    "both shares in one place": ("m=2", B_PLACE, "B_shared[stage][0]"),
    "B to the block's row": ("m=2 n=2", "B_BLOCKS << rank_n", "A_BLOCKS << (rank_m * CLUSTER_N)"),
    "the columns of another block": ("m=2 n=2", "B_BLOCKS << rank_n", "B_BLOCKS << (1 - rank_n)"),
    "ranks exchanged": ("m=2 n=2", "rank_m = rank / CLUSTER_N", "rank_m = rank % CLUSTER_N"),
    "a wait for no empty stage": ("m=2", EMPTY, ""),
    "the parity of an empty stage": ("m=2", EMPTY, EMPTY.replace("phase", "1 - phase")),
    "a wait for no full stage": ("m=2 n=2", FULL, ""),
    "the parity of a full stage": ("m=2 n=2", FULL, FULL.replace("phase", "1 - phase")),
    "the bytes of two steps": ("m=2 n=2", "STAGE_BYTES);", "2 * STAGE_BYTES);"),
    "released before it is read": (
        "m=2 n=2",
        RELEASE,
        "",
        1,
        FULL,
        f"{FULL}\n{RELEASE}\n",
    ),
    "barriers that TMA does not see": (
        "m=2",
        "        gg_fence_barrier_init();\n",
        "",
    ),
    "the next stage of B": ("m=2", "= B_shared[stage][k]", "= B_shared[(stage + 1) % STAGES][k]"),
    "both blocks ask for one share": ("m=2", "B_k = rank_m", "B_k = 0"),
    "a step of an empty sum": ("m=2", STEPS, STEPS.replace("<", "== 0 || tile_k <")),
    "the consumers' ring restarts": ("persistent", TILE, f"stage = phase = 0;\n{TILE}", 2),
    "a cluster's tiles counted twice": (
        "persistent",
        OWN,
        f"{OWN} - (own_tile >= CLUSTER)",
    ),
    "the producer overtakes the pre-pass": ("overlaps", "gg_wait_grid();\n", "\n"),
    "as many blocks as there should be clusters": (
        "persistent",
        "CLUSTER * clusters;",
        "clusters;",
    ),
    "a question about other blocks": ("persistent", "{CLUSTER, THREADS,", "{CLUSTER, CONSUMERS,"),
    "a question about other shared memory": (
        "persistent",
        "THREADS, 0, stream",
        "THREADS, 64, stream",
    ),
    "a cluster's tiles by a block's number": (
        "m=2",
        "const int cluster = blockIdx.x / CLUSTER;",
        "const int cluster = blockIdx.x;",
    ),
}


@pytest.mark.by_default("released to its own block", "ends alone")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("mistake", PLANTS)
def test_finds(mistake: str) -> None:
    name, *edits = PLANTS[mistake]
    text = emitted(name).text
    for at in range(0, len(edits), 3):
        text = planted(text, *edits[at : at + 3])
    assert complaint(name, text) is not None


def test_tiles_need_guards_unless_clusters_are_whole() -> None:
    """Tiles of a cluster may begin after C, also where each that is in C is full."""
    guard = "if (m < M)"
    assert guard in emitted("whole tiles").text and guard not in emitted("whole clusters").text


@pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))
@pytest.mark.proof
def test_the_example_takes_no_more_registers() -> None:
    alone, together = (
        compiler.compile_text(
            compile_source(read_source(str(examples.path_of(name)))).text, "sm_90a"
        )
        for name in ("hopper/persistent", "hopper/cluster")
    )
    assert together.registers <= alone.registers and together.spills == 0
