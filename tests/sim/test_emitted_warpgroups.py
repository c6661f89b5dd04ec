"""Emitted kernels whose warpgroups multiply tiles in shared memory: right in every order, and what
goes wrong with their groups, stages and descriptors is found."""

from __future__ import annotations

import pytest
from emitted_kernels import planted
from emitted_warpgroups import HEAD, PRODUCER, THREE, TWO, complaint, emitted
from part_of_calls import keeps_its_meaning

from gemmgen.proof.outcome import Subject

FOUR = HEAD.replace("tile m=64 n=16 k", "tile m=128 n=32 k")
"""Two warpgroups along m, and two along n."""
HIGH = HEAD.replace("tile m=64 n=16 k", "tile m=128 n=24 k")
HIGH = HIGH.replace("warp_tile m=64 n=16", "warp_tile m=128 n=8\nvectorize C width=2")
BYTES = HEAD.replace("A=bf16 B=bf16 C=bf16", "{types}")
SCALED = BYTES.format(types="A=e4m3 B=e5m2 C=bf16 SA=f32 SB=f32")
INTEGERS = BYTES.format(types="i8").replace("k=64", "k=128")
F16 = HEAD.replace("A=bf16 B=bf16 C=bf16", "A=f16 B=f16")
SCHEDULES = {
    "alone": HEAD + THREE,
    "alone, four warpgroups": FOUR + THREE,
    "alone, two stages": HEAD + TWO,
    "alone, in rounds": f"{HEAD}{THREE}unroll tile_k=3\n",
    "alone, persistent": f"{HEAD}{THREE}persistent\n",
    "parts of k": f"{HEAD}{THREE}split_k parts=3\n",
    "producer": HEAD + THREE + PRODUCER,
    "two stages": HEAD + TWO + PRODUCER,
    "in rounds": f"{HEAD}{THREE}{PRODUCER}unroll tile_k=3\n",
    "four warpgroups": FOUR + THREE + PRODUCER,
    "128 rows": HIGH + THREE + PRODUCER,
    "f16": F16 + THREE + PRODUCER,
    "rows of 64 bytes": HEAD.replace("k=64", "k=32") + THREE + PRODUCER,
    "FP8": f"{SCALED}{THREE}{PRODUCER}fuse_epilogue acc * SA[m] * SB[n]\n",
    "integers": f"{INTEGERS}{THREE}{PRODUCER}persistent\n",
    "integers, 24 columns": HIGH.replace("A=bf16 B=bf16 C=bf16", "i8").replace("n=8", "n=24")
    + THREE,
    "atom columns of bytes": INTEGERS.replace("k=128", "k=256") + TWO + PRODUCER,
    "atom columns": HEAD.replace("k=64", "k=128") + THREE + PRODUCER,
    "rows of 32 bytes": HEAD.replace("k=64", "k=16") + THREE + PRODUCER,
    "persistent": f"{HEAD}{THREE}{PRODUCER}persistent\nraster group=2\n",
    "ping-pong": f"{HEAD}{THREE}persistent\nwarp_specialize producers=1 order=pingpong\n",
    "cluster": f"{FOUR}{THREE}{PRODUCER}persistent\ncluster m=2\n",
    "staged output": HEAD.replace("A B\nwarp", "A B C\nwarp") + THREE + PRODUCER,
    "epilogue": f"{HEAD}{THREE}{PRODUCER}fuse_epilogue relu(acc + bias[n]) + row[m]\n",
}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_is_right(name: str) -> None:
    assert complaint(SCHEDULES[name]) is None


LIKE_ANOTHER = {
    "alone, four warpgroups": "four warpgroups",
    "alone, two stages": "alone",
    "two stages": "producer",
    "in rounds": "alone, in rounds",
    "rows of 32 bytes": "rows of 64 bytes",
    "integers, 24 columns": "integers",
}
"""Schedules whose passes all are those of another one: their texts run in every order, and the
meaning is compared for the others."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", [name for name in SCHEDULES if name not in LIKE_ANOTHER])
def test_every_pass_keeps_the_meaning(name: str) -> None:
    keeps_its_meaning(Subject(emitted(SCHEDULES[name])), name, SCHEDULES)


FULL = "while (!gg_try_wait(full[stage], phase)) {}"
EMPTY = "while (!gg_try_wait(empty[stage], phase)) {}"
TURN = "if (++stage == STAGES) { stage = 0; phase ^= 1; }"
NO_TURN = "if (++stage == STAGES) stage = 0;"
BEFORE = "gg_arrive(empty[stage > 0 ? stage - 1 : STAGES - 1]);"
WAIT = "gg_wgmma_wait<1>();"
PLANTS = {
    "no wait for a full stage": ("persistent", FULL, "", 1),
    "the consumers' parity does not turn": ("persistent", TURN, NO_TURN, 2),
    "too few bytes": ("persistent", "stage], STAGE_BYTES)", "stage], STAGE_BYTES / 2)", 1),
    "too many bytes": ("persistent", "stage], STAGE_BYTES)", "stage], STAGE_BYTES + 16)", 1),
    "no wait for an empty stage": ("persistent", EMPTY, "", 1),
    "the parity of a full stage for that of an empty one": (
        "persistent",
        "int phase = 1;",
        "int phase = 0;",
        1,
    ),
    "a descriptor of rows as stored": ("persistent", "1ULL << 62", "0ULL << 62", 1),
    "a descriptor of other rows": ("persistent", "1ULL << 62", "2ULL << 62", 1),
    "a map that is not swizzled": ("persistent", "gg_SWIZZLE_128B)", "0)", 1),
    "eight rows in another place": ("persistent", "[warpgroup_m], 1024)", "[warpgroup_m], 512)", 1),
    "accumulators are read before the wait": ("persistent", "gg_wgmma_end(acc);", "", 1),
    "accumulators are read after a wait for all but one": (
        "persistent",
        "gg_wgmma_end(acc);",
        WAIT,
        1,
    ),
    "the present stage is released": ("persistent", BEFORE, "gg_arrive(empty[stage]);", 1),
    "a stage is released that is read yet": ("persistent", WAIT, "gg_wgmma_wait<2>();", 1),
    "no wait in a step": ("persistent", WAIT, "", 1),
    "no stage is released after the first step": ("persistent", "if (tile_k > 0) {", "{", 1),
    "the last stage is not released": ("persistent", "if (K > 0) {", "if (K < 0) {", 1),
    "no fence in front": ("persistent", "gg_wgmma_fence();", "", 1),
    "accumulators restart with each tile of k": ("persistent", "tile_k + k > 0)", "k > 0)", 1),
    "accumulators go on from tile to tile": ("persistent", "tile_k + k > 0)", "1)", 1),
    "a step along k of bytes": ("persistent", "A_matrix + k * 2 / 16", "A_matrix + k * 2", 1),
    "another step along k of B": ("persistent", "B_matrix + k * 2 / 16", "B_matrix + k / 16", 1),
    "a stage of B off by one": (
        "persistent",
        "gg_matrix_128B(B_shared[stage]",
        "gg_matrix_128B(B_shared[(stage + 1) % STAGES]",
        1,
    ),
    "the ring restarts in each tile": (
        "persistent",
        "// main loop over tiles along K",
        "stage = 0, phase = 0;",
        1,
    ),
    "no commit": ("persistent", "gg_wgmma_commit();", "", 1),
    "an empty sum": ("persistent", "if (K == 0)", "if (K < 0)", 1),
    "some lanes do not multiply": (
        "persistent",
        "gg_wgmma_fence();",
        "if (lane < 31) gg_wgmma_fence();",
        1,
    ),
    "the types of A and B exchanged": ("FP8", ".e4m3.e5m2", ".e5m2.e4m3", 1),
    "the type of A for B": ("FP8", ".e4m3.e5m2", ".e4m3.e4m3", 1),
    "a scale of another row": ("FP8", "* SA[m] * SB_", "* SA[tile_m] * SB_", 1),
    "a step of k of halves": ("integers", "IK = 32", "IK = 16", 1),
    "bytes along k as halves": ("integers", "A_matrix + k / 16", "A_matrix + k * 2 / 16", 1),
    "accumulators of integers are read before the wait": ("integers", "gg_wgmma_end(acc);", "", 1),
    "the next atom column of bytes": (
        "atom columns of bytes",
        "(k / A_ATOM) * BM",
        "(k / A_ATOM) * BN",
        1,
    ),
    "the next atom column": ("atom columns", "(k / A_ATOM) * BM", "(k / A_ATOM) * BN", 1),
    "rows of the other instruction": ("128 rows", "FM * 1024", "1024", 1),
    "accumulators of the other instruction": ("128 rows", "acc[inst_m + FM]", "acc[inst_m + 1]", 1),
    "another warpgroup's rows": (
        "four warpgroups",
        "warpgroup_m = (first_warp % (BM / WM)) * WM",
        "warpgroup_m = (first_warp / (BM / WM)) * WM",
        1,
    ),
    "another warpgroup's columns": (
        "four warpgroups",
        "warpgroup_n = (first_warp / (BM / WM)) * WN",
        "warpgroup_n = 0",
        1,
    ),
    "warps along n first": (
        "four warpgroups",
        "thread_m = (warp % (BM / WM)) * WM",
        "thread_m = (warp / (BN / WN)) * WM",
        1,
    ),
    "no barrier before a stage is copied to": ("alone, four warpgroups", "__syncthreads();", "", 2),
    "a stage is copied to that is read yet": ("alone, four warpgroups", WAIT, "", 1),
    "the slice is not fenced from its reads": (
        "staged output",
        "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);",
        "",
        1,
    ),
}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth = PLANTS[plant]
    changed = planted(emitted(SCHEDULES[name]).text, old, new, nth)
    assert complaint(SCHEDULES[name], changed) is not None
