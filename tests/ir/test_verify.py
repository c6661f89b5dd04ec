"""Every rule of the declared IR is broken once, by an edit of a well-formed program's text."""

from __future__ import annotations

import pytest

from gemmgen.ir.nodes import Program
from gemmgen.ir.text import parse_ir
from gemmgen.ir.validate import FORM, USE, IRError, verify

from .samples import (
    BOXED,
    EARLY,
    FAST,
    FOLDED,
    MATRICES,
    MMA_BYTES,
    NAIVE,
    PLANES,
    PROGRAMS,
    STAGED,
    TENSOR,
    TRANSPOSED,
    UNFUSED,
    UNROLLED,
)

STAGES_B = "f32 of=B stages=3"
SHARED_A = "tile A_shared[k=8, m=128] f32 of=A pad=4 stages=2"
PLANTED = [
    ("names_are_unique", UNFUSED, "kernel gemm_epilogue", "kernel gemm"),
    ("names_are_unique", NAIVE, "    tensor A[m, k] f32\n", "    tensor A[m, k] f32\n" * 2),
    ("used_buffers_are_declared", NAIVE, "    tensor A[m, k] f32\n", ""),
    ("used_buffers_are_declared", NAIVE, "acc += A * B", "acc += A * X"),
    ("declared_buffers_are_used", FAST, "acc += A_frag", "acc += A_shared"),
    ("extents_are_those_of_the_space", NAIVE, "tensor A[m, k]", "tensor A[m=8, k=8]"),
    ("extents_are_those_of_the_space", FAST, "A_shared[k=8", "A_shared[k=0"),
    ("spreads_cover_register_tiles", NAIVE, "n=1x1x32x1", "n=1x1x16x1"),
    ("spreads_cover_register_tiles", NAIVE, " spread [m=1x1x8x1, n=1x1x32x1] x=n", ""),
    ("spreads_cover_register_tiles", FAST, SHARED_A, f"{SHARED_A} spread [k=1x1x8x1] x=k"),
    ("work_tiles_the_output", NAIVE, "work [m=8, n=32]", "work [m=8, n=64]"),
    ("work_tiles_the_output", NAIVE, "work [m=8, n=32]", "work [m=8, k=32]"),
    ("work_tiles_the_output", FAST, "raster=8 ", "raster=0 "),
    ("work_tiles_the_output", FAST, "raster=8 ", "raster=6 order=hilbert "),
    ("work_tiles_the_output", NAIVE, "work [m=8, n=32]", "work [m=8, n=32] order=hilbert"),
    ("work_tiles_the_output", NAIVE, "x=n", "x=k"),
    ("work_tiles_the_output", NAIVE, "n=32]\n    tensor", "n=32] cluster=[m=2, n=1]\n    tensor"),
    ("work_tiles_the_output", NAIVE, "n=32]\n    tensor", "n=32] cluster=[m=4, n=4]\n    tensor"),
    ("work_tiles_the_output", NAIVE, "n=32]\n    tensor", "n=32] cluster=[n=2, m=1]\n    tensor"),
    ("work_tiles_the_output", MATRICES, "batch=[b, h]   #", "batch=[b]   #"),
    ("work_tiles_the_output", MATRICES, "batch=[b, h]   #", "batch=[h, b]   #"),
    ("work_tiles_the_output", NAIVE, "n=32]\n    tensor", "n=32] batch=[b]\n    tensor"),
    ("bounds_and_loops_are_whole", UNROLLED, "blocks=2", "blocks=33"),
    ("bounds_and_loops_are_whole", UNROLLED, "unroll=4", "unroll=3"),
    ("bounds_and_loops_are_whole", UNROLLED, "unroll=2", "unroll=0"),
    ("bounds_and_loops_are_whole", EARLY, " stages=3", ""),
    ("bounds_and_loops_are_whole", EARLY, "K divisor=4", "K divisor=2"),
    ("bounds_and_loops_are_whole", EARLY, "work [m=16, n=16]", "work [m=16, n=16] parts=4"),
    (
        "bounds_and_loops_are_whole",
        EARLY,
        "      copy B_shared = B\n      loop k\n        contract acc += A_shared * B_shared",
        "      loop k\n        contract acc += A_shared * B",
    ),
    ("roles_are_those_of_the_operations", NAIVE, "tensor C", "temporary C"),
    ("roles_are_those_of_the_operations", FAST, "tile A_shared", "staging A_shared"),
    ("roles_are_those_of_the_operations", FAST, "fragment A_frag", "partial A_frag"),
    ("roles_are_those_of_the_operations", FAST, "f32 of=A pad", "f32 of=B pad"),
    ("roles_are_those_of_the_operations", FAST, "f32 of=A pad", "f32 pad"),
    ("roles_are_those_of_the_operations", STAGED, "f32 of=C", "f32 of=A"),
    ("roles_are_those_of_the_operations", TENSOR, "f32 of=acc", "f32 of=C"),
    ("roles_are_those_of_the_operations", FOLDED, "partial part", "fragment part"),
    ("planes_are_split_once", PLANES, "  split B_parts = B parts=3   # decompose into=bf16\n", ""),
    ("planes_are_split_once", PLANES, "split B_parts = B parts=3", "split A_parts = A parts=3"),
    ("planes_are_split_once", PLANES, "split B_parts = B parts=3", "split B_parts = A parts=3"),
    ("planes_are_split_once", PLANES, "split B_parts = B parts=3", "split B_parts = B parts=2"),
    ("used_buffers_are_declared", NAIVE, "accumulator acc", "partial acc"),
    ("global_buffers_are_the_problems", NAIVE, "tensor B[k, n]", "tensor B[n, k]"),
    ("global_buffers_are_the_problems", MATRICES, "tensor C[m, n]", "tensor C[b, h, m, n]"),
    ("pads_and_stages_have_a_place", FAST, "stages=3", "stages=0"),
    ("pads_and_stages_have_a_place", NAIVE, "tensor C[m, n] f32", "tensor C[m, n] f32 pad=4"),
    (
        "pads_and_stages_have_a_place",
        FAST,
        "acc[m=128, n=128] f32",
        "acc[m=128, n=128] f32 stages=2",
    ),
    (
        "swizzles_permute_rows",
        FAST,
        "f32 of=B stages=3",
        "f32 of=B stages=3 swizzle by=3 every=1 chunk=4",
    ),
    (
        "swizzles_permute_rows",
        FAST,
        "f32 of=B stages=3",
        "f32 of=B stages=3 swizzle by=2 every=1 chunk=2",
    ),
    (
        "swizzles_permute_rows",
        FAST,
        "f32 of=B stages=3",
        "f32 of=B stages=3 swizzle by=64 every=1 chunk=4",
    ),
    ("swizzles_permute_rows", FAST, STAGES_B, f"{STAGES_B} atom_width=32"),
    ("swizzles_permute_rows", BOXED, "swizzle by=8", "atom_width=16 swizzle by=8"),
    ("swizzles_permute_rows", FAST, "pad=4", "pad=4 swizzle by=2 every=1 chunk=4"),
    (
        "boxes_land_as_tiles_lie",
        BOXED,
        "swizzle by=8 every=1 chunk=4",
        "swizzle by=4 every=1 chunk=4",
    ),
    (
        "fragments_are_distributed_like_the_accumulator",
        FAST,
        "stages=2 spread [m=1x2x16x4",
        "spread [m=1x1x16x8",
    ),
    (
        "fragments_are_distributed_like_the_accumulator",
        FAST,
        "spread [n=1x2x16x4] x=n",
        "spread [n=1x2x16x4] x=m",
    ),
    (
        "one_contraction_in_the_first_kernel",
        NAIVE,
        "      contract acc += A * B\n",
        "      contract acc += A * B\n" * 2,
    ),
    ("one_contraction_in_the_first_kernel", NAIVE, "    init acc\n", ""),
    ("the_contraction_sums_over_k", NAIVE, "loop k", "loop n"),
    ("the_contraction_sums_over_k", NAIVE, "acc += A * B", "acc += B * A"),
    ("copies_keep_letters", FAST, "A_frag = A_shared", "A_frag = B_shared"),
    ("copies_keep_letters", FAST, "A_shared = A width", "A_shared = B width"),
    ("hints_are_of_asynchronous_copies", FAST, "A_frag = A_shared", "A_frag = A_shared evict=last"),
    (
        "copies_go_inward_or_take_a_mapped_tile_outward",
        UNFUSED,
        "copy acc = unfused",
        "copy acc = acc",
    ),
    (
        "copies_go_inward_or_take_a_mapped_tile_outward",
        STAGED,
        "    copy C = C_shared width=4\n",
        "",
    ),
    (
        "copies_go_inward_or_take_a_mapped_tile_outward",
        FAST,
        "    map C =",
        "    copy C = A_shared\n    map C =",
    ),
    ("mapped_tiles_leave_in_slices", STAGED, "C_shared[m=8, n=64]", "C_shared[m=32, n=64]"),
    ("mapped_tiles_leave_in_slices", STAGED, "C_shared[m=8, n=64]", "C_shared[n=64, m=8]"),
    (
        "mapped_tiles_leave_in_slices",
        STAGED,
        "n=64] f32 of=C\n    fragment A",
        "n=64] f32 of=C stages=3\n    fragment A",
    ),
    ("mapped_tiles_leave_in_slices", STAGED, "    copy C =", "    init acc\n    copy C ="),
    ("widths_divide_what_they_move", STAGED, "C_shared width=4", "C_shared width=3"),
    ("widths_divide_what_they_move", STAGED, "C[m, n] width=2", "C[m, n] width=4"),
    (
        "shared_tiles_are_produced_once",
        STAGED,
        "    map C_shared",
        "    map C_shared = acc\n    map C_shared",
    ),
    ("operands_lie_along_k", MMA_BYTES, "B_shared[n=32, k=32]", "B_shared[k=32, n=32]"),
    ("sums_leave_through_shared_memory", STAGED, " width=2\n", " width=2 through=C_shared\n"),
    ("pipelines_split_k", FAST, "pipeline k by 8", "pipeline k by 16"),
    ("pipelines_split_k", FAST, "pipeline k by 8", "pipeline m by 8"),
    ("pipelines_split_k", FAST, "      loop k", "      loop m"),
    ("shared_tiles_are_produced_once", FAST, "copy B_shared = B", "copy A_shared = A"),
    ("widths_divide_what_they_move", FAST, "B_shared = B width=4", "B_shared = B width=8"),
    ("widths_divide_what_they_move", FAST, "n=1x2x16x4", "n=1x4x16x2"),
    ("widths_divide_what_they_move", TRANSPOSED, "x_shared = x", "x_shared = x width=3"),
    ("wide_rows_stay_aligned", FAST, "pad=4", "pad=3"),
    (
        "types_change_on_the_way_to_a_fragment",
        FAST,
        "m=128] f32 of=A pad=4",
        "m=128] f16 of=A pad=4",
    ),
    ("types_change_on_the_way_to_a_fragment", NAIVE, "acc[m=8, n=32] f32", "acc[m=8, n=32] f64"),
    (
        "expressions_know_their_names",
        FAST,
        "map C = relu(acc + bias[n])",
        "map C = relu(acc + bias[m])",
    ),
    (
        "expressions_know_their_names",
        FAST,
        "map C = relu(acc + bias[n])",
        "map C = relu(acc + gamma)",
    ),
    (
        "fragments_are_distributed_like_the_accumulator",
        TENSOR,
        "k=1x1x1x16] x=n atom=wmma",
        "k=1x1x1x16] x=n",
    ),
    ("declared_buffers_are_used", TENSOR, " through=acc_shared", ""),
    ("atoms_find_their_pieces", TENSOR, " atom=wmma", ""),
    ("atoms_find_their_pieces", TENSOR, "loop k step=16", "loop k step=8"),
    ("atoms_find_their_pieces", TENSOR, " atom=wmma", ""),
    ("atoms_find_their_pieces", TENSOR, "n=1x2x1x16", "n=1x1x2x16"),
    (
        "atoms_find_their_pieces",
        TENSOR,
        "k=16] f16 of=A spread [m=2x2x1x16, k=1x1x1x16",
        "k=8] f16 of=A spread [m=2x2x1x16, k=1x1x1x8",
    ),
    ("fragments_lie_in_aligned_lines", TENSOR, "k=32] f16 of=A pad=8", "k=32] f16 of=A pad=4"),
    ("promotions_end_whole_steps", FOLDED, "every=64", "every=48"),
    ("promotions_end_whole_steps", FOLDED, "every=64", "every=8"),
    (
        "promotions_end_whole_steps",
        FOLDED,
        "partial part[m=32, n=32] f32",
        "partial part[m=32, n=32] f16",
    ),
    ("the_contraction_sums_over_k", FOLDED, "contract part", "contract acc"),
    ("the_contraction_sums_over_k", FOLDED, "        promote acc += part every=64\n", ""),
    ("sums_leave_through_shared_memory", TENSOR, "acc_shared[m=32", "acc_shared[m=16"),
    ("sums_leave_through_shared_memory", NAIVE, "C[m, n]\n", "C[m, n] through=acc\n"),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_well_formed_programs_pass(name: str):
    verify(parse_ir(PROGRAMS[name], Program))


def broken(text: str) -> set[str]:
    """The names of the rules that a program breaks."""
    program = parse_ir(text, Program)
    for table in (FORM, USE):
        found = {r.__name__ for r in table for kernel in program.kernels if any(r(program, kernel))}
        if found:
            return found
    return set()


@pytest.mark.parametrize(("rule", "text", "old", "new"), PLANTED)
def test_a_planted_mistake_breaks_its_rule(rule: str, text: str, old: str, new: str):
    assert old in text
    malformed = text.replace(old, new)
    with pytest.raises(IRError, match="kernel "):
        verify(parse_ir(malformed, Program))
    assert rule in broken(malformed)


def test_every_rule_has_a_planted_mistake():
    planted = {rule for rule, *_ in PLANTED}
    assert planted == {rule.__name__ for rule in (*FORM, *USE)}
