"""Tiles that TMA swizzles: right with each span, and mistakes about where chunks lie
are seen on a CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.lower import shared_arrays, tensor_maps
from gemmgen.proof import cpu, meaning

from .subjects import mutant, subject

SPAN_128 = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
tile m=32 n=64 k=64
cache_shared A B
warp_tile m=16 n=32
tensor_core via=mma
vectorize C width=2
swizzle A B
double_buffer A B stages=3
async_copy A B via=tma
"""
ROLES = f"{SPAN_128}warp_specialize producers=1\n"
AHEAD = ROLES.replace("async_copy", "double_buffer A.register B.register\nasync_copy")
CLUSTER = f"{AHEAD}persistent\ncluster m=2 n=2\n"
SPAN_64 = ROLES.replace("k=64", "k=32").replace("bf16", "f16")
SPANS_64_AND_32 = """\
gemm C[m, n] = A[m, k] * B[k, n]
target sm_90a
tile m=16 n=8 k=16
cache_shared A B
register_block m=2 n=2
swizzle A B
double_buffer A B
async_copy A B via=tma
"""
DOUBLES = """\
gemm C[m, n] = A[k, m] * B[k, n]
dtype A=f64 B=f64 C=f64 acc=f64
target sm_90a
tile m=16 n=16 k=8
cache_shared A B
register_block m=2 n=4
vectorize A.shared B.shared width=2
swizzle A B
double_buffer A B
async_copy A B via=tma
warp_specialize producers=1
"""
ATOM_COLUMNS_OF_128 = """\
gemm C[m, n] = A[k, m] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
tile m=128 n=16 k=32
cache_shared A B
warp_tile m=32 n=16
tensor_core via=mma
vectorize C width=2
swizzle A B
double_buffer A B
async_copy A B via=tma
warp_specialize producers=1
"""
ATOM_COLUMNS_AHEAD = ATOM_COLUMNS_OF_128.replace(
    "B\nasync", "B\ndouble_buffer A.register B.register\nasync"
)
ATOM_COLUMNS_IN_A_CLUSTER = f"{ATOM_COLUMNS_OF_128}cluster m=2 n=2\n"
ATOM_COLUMNS_OF_64 = """\
gemm C[m, n] = A[k, m] * B[k, n]
target sm_90a
tile m=48 n=64 k=8
cache_shared A B
register_block m=6 n=8
vectorize B.shared width=4
swizzle A B
double_buffer A B stages=3
async_copy A B via=tma
"""
OUT = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
tile m=32 n=128 k=32
cache_shared A B C
warp_tile m=16 n=64
tensor_core via=mma
vectorize C width=2
swizzle A B C
double_buffer A B
async_copy A B C via=tma
warp_specialize producers=1
fuse_epilogue relu(acc + bias[n])
"""
OUT_OF_F32 = """\
gemm C[m, n] = A[m, k] * B[k, n]
target sm_90a
tile m=16 n=32 k=8
cache_shared A B C
swizzle C
double_buffer A B
async_copy A B C via=tma
persistent
"""
RIGHT = {
    "out": OUT,
    "out_of_f32": OUT_OF_F32,
    "atom_columns_of_128": ATOM_COLUMNS_OF_128,
    "atom_columns_ahead": ATOM_COLUMNS_AHEAD,
    "atom_columns_in_a_cluster": ATOM_COLUMNS_IN_A_CLUSTER,
    "atom_columns_of_64": ATOM_COLUMNS_OF_64,
    "128": SPAN_128,
    "128_roles": ROLES,
    "128_ahead": AHEAD,
    "128_cluster": CLUSTER,
    "64_halves": SPAN_64,
    "64_and_32": SPANS_64_AND_32,
    "128_doubles": DOUBLES,
}

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


# Mistakes of the lowering, which the program's meaning shows as well as a run of the text.


def a_map_that_is_not_swizzled(patch: Patch) -> None:
    patch.setattr(tensor_maps, "span_of", lambda tile: 0)


def a_tile_that_begins_at_any_box(patch: Patch) -> None:
    patch.setattr(shared_arrays, "lands_at", lambda tile: 128)


def a_map_of_the_other_span(patch: Patch) -> None:
    patch.setattr(tensor_maps, "span_of", lambda tile: 64)


BY_MEANING: tuple[Plant, ...] = (
    *(a_map_that_is_not_swizzled, a_tile_that_begins_at_any_box, a_map_of_the_other_span),
)


@pytest.mark.proof
@pytest.mark.parametrize("plant", BY_MEANING, ids=lambda plant: plant.__name__)
def test_the_programs_meaning_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    right = subject(SPAN_128)
    plant(monkeypatch)
    outcome = meaning.check(right)
    assert outcome.status == "failed" and "C[" in outcome.detail, outcome.detail


SWIZZLED = "[(A_row_k + k) ^ ((A_row_m % 8) * 8)]"
MUTANTS = {
    "rows read as stored in the matrix": (SWIZZLED, "[A_row_k + k]", "C: "),
    "rows of a pair read alike": (SWIZZLED, SWIZZLED.replace("A_row_m %", "A_row_m / 2 %"), "C: "),
    "a map that is not swizzled": ("gg_SWIZZLE_128B)", "0)", "of 0 x 0 x 3 x 0, not"),
    "a map of a shorter span": ("gg_SWIZZLE_128B)", "2)", "more than the 64 swizzled"),
    "a tile at a multiple of 128 bytes": ("alignas(1024)", "alignas(128)", "lacks alignas(1024)"),
    "rows that TMA may overtake": ("gg_fence_async();\n", "\n", "not fenced"),
    "a box of half the rows": ("{BK, BM},", "{BK, BM / 2},", ""),
    "a box a row further": ("(A_shared[stage], A,", "(A_shared[stage][1], A,", ""),
}
"""Of the text: what the lowering does not make, but a hand might."""

OF_ATOM_COLUMNS = {
    "each box to the first atom column": ("[box_m / A_ATOM], A,", "[0], A,", "under way"),
    "the first atom column's columns for each": ("tile_m + box_m,", "tile_m,", "C: "),
    "all columns read from the first atom column": (
        "[(A_row_m + frag_m * IM) / A_ATOM]",
        "[0]",
        "C: ",
    ),
    "one atom column's bytes expected": (
        "STAGE_BYTES = BK * BM * 2",
        "STAGE_BYTES = BK * A_ATOM * 2",
        "under way",
    ),
}
OF_THE_OUTPUT = {
    "a slice written in order": (" ^ ((slice_m % 8) * 8)]", "]", "C: "),
    "the first atom column stored for each": ("[box_n / C_ATOM][box_m]", "[0][box_m]", "C: "),
    "the fence before it is stored dropped": (
        "gg_fence_async();\n            gg_sync_warps",
        "gg_sync_warps",
        "not fenced",
    ),
}


@pytest.mark.by_default("a tile at a multiple of 128 bytes")
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_run_of_a_mutant_shows_it(name: str) -> None:
    before, after, message = MUTANTS[name]
    outcome = cpu.check(mutant(ROLES, before, after))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail


@pytest.mark.proof
@pytest.mark.parametrize("name", OF_ATOM_COLUMNS)
def test_a_run_of_a_mutant_of_atom_columns_shows_it(name: str) -> None:
    before, after, message = OF_ATOM_COLUMNS[name]
    outcome = cpu.check(mutant(ATOM_COLUMNS_OF_128, before, after))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail


@pytest.mark.proof
@pytest.mark.parametrize("name", OF_THE_OUTPUT)
def test_a_run_of_a_mutant_of_the_output_shows_it(name: str) -> None:
    before, after, message = OF_THE_OUTPUT[name]
    outcome = cpu.check(mutant(OUT, before, after))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail
