"""Operands that lie along m or n, multiplied by warpgroups where they are: right in every order,
and wrong descriptors, steps and boxes are found."""

from __future__ import annotations

import pytest
from emitted_kernels import planted
from emitted_warpgroups import HEAD, PRODUCER, THREE, complaint, emitted
from part_of_calls import keeps_its_meaning

from gemmgen.proof.outcome import Subject

NN = HEAD.replace("B[n, k]", "B[k, n]").replace("n=16", "n=64")
"""Both operands as rows of matrices: B along n, in rows of 128 bytes."""
TT = HEAD.replace("A[m, k]", "A[k, m]")
TN = TT.replace("B[n, k]", "B[k, n]")
"""Rows of 128 bytes of A, and of 32 of B."""
TWO_HIGH = TN.replace("tile m=64 n=16 k=64", "tile m=128 n=32 k=32")
TWO_HIGH = TWO_HIGH.replace("warp_tile m=64 n=16", "warp_tile m=64 n=32")
"""A atom column of A for each of two warpgroups."""
HIGH = TN.replace("tile m=64 n=16 k=64", "tile m=128 n=16 k=32")
HIGH = HIGH.replace("warp_tile m=64 n=16", "warp_tile m=128 n=16\nvectorize C width=2")
"""Two atom columns of A for a warpgroup."""
HIGHEST = HIGH.replace("\ntile m=128", "\ntile m=256")
"""Two warpgroups, one below another, have every other atom column each."""
WIDE = NN.replace("tile m=64 n=64 k=64", "tile m=64 n=128 k=32")
"""A atom column of B for each of two warpgroups."""
ATOM_COLUMNS = NN.replace("tile m=64 n=64 k=64", "tile m=64 n=96 k=32").replace("n=64", "n=96")
"""Three atom columns of B for one instruction."""
SCHEDULES = {
    "B along n": NN + THREE + PRODUCER,
    "B along n, alone": NN + THREE,
    "B along n, in atom columns": ATOM_COLUMNS + THREE + PRODUCER,
    "B along n, two beside": WIDE + THREE + PRODUCER,
    "A along m": TT + THREE + PRODUCER,
    "A along m, parts of k": f"{TT}{THREE}split_k parts=3\n",
    "A along m, staged output": TT.replace("A B\nwarp", "A B C\nwarp") + THREE + PRODUCER,
    "128 rows": HIGH + THREE + PRODUCER,
    "128 rows, two": HIGHEST + THREE + PRODUCER,
    "128 rows, staged output": HIGHEST.replace("A B\nwarp", "A B C\nwarp") + THREE,
    "128 rows, ping-pong": f"{HIGH}{THREE}persistent\nwarp_specialize producers=1 order=pingpong\n",
    "both": TN + THREE + PRODUCER,
    "both, ping-pong": f"{TN}{THREE}persistent\nwarp_specialize producers=1 order=pingpong\n",
    "both, cluster": f"{TWO_HIGH}{THREE}{PRODUCER}persistent\ncluster m=2 n=2\n",
}
ORDERS = (
    ("f16", "A[m, k]", "B[n, k]"),
    ("f16", "A[k, m]", "B[k, n]"),
    ("bf16", "A[m, k]", "B[k, n]"),
    ("bf16", "A[k, m]", "B[n, k]"),
)
"""Half of all: any two of the type and the orders of A and of B have every pair."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_is_right(name: str) -> None:
    assert complaint(SCHEDULES[name]) is None


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_pass_keeps_the_meaning(name: str) -> None:
    keeps_its_meaning(Subject(emitted(SCHEDULES[name])), name, SCHEDULES)


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("dtype, a, b", ORDERS)
def test_every_storage_order_is_right(dtype: str, a: str, b: str) -> None:
    schedule = f"{TWO_HIGH}{THREE}{PRODUCER}persistent\nraster group=2\ncluster n=2\n"
    schedule = schedule.replace("bf16", dtype).replace("A[k, m]", a).replace("B[k, n]", b)
    assert complaint(schedule) is None


STEP_OF_A, STEP_OF_B = "A_matrix + k * 128 / 16", "B_matrix + k * 64 / 16"
PLANTS = {
    "strides exchanged": (
        "B along n, in atom columns",
        "(column_bytes >> 4) << 16 |\n         512ULL / 16 << 32",
        "(column_bytes >> 4) << 32 |\n         512ULL / 16 << 16",
    ),
    "the atom column as the step of eight rows": (
        "B along n, in atom columns",
        "512ULL / 16",
        "1024ULL / 16",
    ),
    "atom columns that overlap": ("B along n, in atom columns", "BK * 64)", "BK * 32)"),
    "a descriptor of an operand along k": (
        "B along n, in atom columns",
        "gg_matrix_64B_mn_major(B_shared",
        "gg_matrix_64B(B_shared",
    ),
    "B is not transposed": ("B along n", "more, 1, 1, 0, 1;", "more, 1, 1, 0, 0;"),
    "A is transposed in place of B": ("B along n", "more, 1, 1, 0, 1;", "more, 1, 1, 1, 0;"),
    "A is not transposed": ("A along m", "more, 1, 1, 1, 0;", "more, 1, 1, 0, 0;"),
    "both the other way": ("both", "more, 1, 1, 1, 1;", "more, 1, 1, 0, 0;"),
    "a step along k within a row": ("A along m", STEP_OF_A, "A_matrix + k * 2 / 16"),
    "a step along k of half a row": (
        "B along n, in atom columns",
        STEP_OF_B,
        "B_matrix + k * 32 / 16",
    ),
    "a step along k of other rows": ("both", "k * 32 / 16", "k * 128 / 16"),
    "rows that are swizzled otherwise": ("A along m", "1ULL << 62", "2ULL << 62"),
    "rows as stored": ("both", "1ULL << 62", "0ULL << 62"),
    "another warpgroup's atom column": (
        "B along n, two beside",
        "[warpgroup_n / B_ATOM]",
        "[1 - warpgroup_n / B_ATOM]",
    ),
    "each warpgroup has the first atom column": ("both, cluster", "[warpgroup_m / A_ATOM]", "[0]"),
    "a box a atom column further": ("B along n, in atom columns", "[box_n / B_ATOM]", "[0]"),
    "a box of other columns": ("B along n, in atom columns", "tile_n + box_n", "tile_n"),
    "another block's share of k": ("both, cluster", "tile_k + A_k", "tile_k"),
    "rows of the other instruction": ("128 rows, two", "(BM / FM) / A_ATOM", "A_ATOM / A_ATOM"),
    "accumulators of the other instruction": (
        "128 rows, two",
        "acc[inst_m * (TM / FM)]",
        "acc[inst_m]",
    ),
    "rows as along k": ("128 rows, two", "* (WM / FM) + lane", "* WM + lane"),
    "a map that is not swizzled": ("A along m", "gg_SWIZZLE_128B)", "0)"),
}


@pytest.mark.by_default("strides exchanged")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new = PLANTS[plant]
    changed = planted(emitted(SCHEDULES[name]).text, old, new)
    assert complaint(SCHEDULES[name], changed) is not None
