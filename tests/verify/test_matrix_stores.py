"""Sums that lanes write to C's slice by stmatrix: right, without bank conflicts, and mistakes about
whose row is where are seen on a CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.analyze.access_counts import Counts
from gemmgen.analyze.count import count_every_block, count_launch
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.ir.expr import Expr, Int
from gemmgen.ir.simplify import sub
from gemmgen.lower import matrix_stores
from gemmgen.lower.context import Context
from gemmgen.proof import cpu, meaning

from .subjects import mutant, subject

GOLDEN = Path(__file__).parents[1] / "golden" / "matrix_stores.sched"
BY_FOUR = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=f16 B=f16 C=f16
target sm_90a
tile m=32 n=32 k=16
cache_shared A B C
warp_tile m=16 n=32
tensor_core via=mma
vectorize C width=2
swizzle C
double_buffer A B
async_copy A B C via=tma
"""
RIGHT = {
    "by four": BY_FOUR,
    "warps along n, by two": BY_FOUR.replace("m=16 n=32", "m=32 n=16"),
    "not swizzled, two slices": BY_FOUR.replace("swizzle C", "double_buffer C stages=2"),
    "nothing read along n": f"{BY_FOUR}fuse_epilogue acc * scale[m]\n",
    "nothing read at all": f"{BY_FOUR}fuse_epilogue 2 * acc\n".replace(
        "target", "assume M % 32 == 0\ntarget"
    ),
    "a warpgroup's": GOLDEN.read_text(encoding="utf-8"),
}


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    assert "gg_stmatrix_x" in kernel.emitted.text
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


PAIRS = {
    "f32": BY_FOUR.replace("C=f16", "C=f32"),
    "single elements": BY_FOUR.replace("vectorize C width=2\n", ""),
    "one matrix": BY_FOUR.replace("m=16 n=32", "m=16 n=8"),
    "stored by threads": BY_FOUR.replace("A B C via", "A B via").replace("swizzle C\n", ""),
}


@pytest.mark.parametrize("name", PAIRS)
def test_others_are_written_by_each_lane(name: str) -> None:
    assert "gg_stmatrix" not in subject(PAIRS[name]).emitted.text


def written(schedule: str) -> Counts:
    """What the lanes write to the slice, for one tile."""
    emitted = subject(schedule).emitted
    kernel = emitted.lowered.kernels[0]
    values = arguments_of(kernel.interface, emitted.program.problem, (32, 32, 16))
    found = count_launch(kernel, values)
    assert found == count_every_block(kernel, values)
    (counts,) = (
        each
        for site, each in found.items()
        if site.buffer == "C_shared" and site.write and not site.boxes
    )
    return counts


def test_a_fourth_of_the_stores_and_no_bank_conflict() -> None:
    """Of rows of 64 bytes two and two have the same banks, unless they are swizzled."""
    by_four, plain = written(BY_FOUR), written(BY_FOUR.replace("swizzle C\n", ""))
    assert (by_four.elements, by_four.requests) == (32 * 32, 32 * 32 // 8 // 32)
    assert (by_four.conflicts, by_four.wavefronts) == (0, 4 * by_four.requests)
    assert plain.wavefronts > by_four.wavefronts
    by_pairs = written(BY_FOUR.replace("m=16 n=32", "m=16 n=8"))
    assert by_pairs.requests == 4 * by_four.requests


@pytest.mark.proof
def test_the_programs_meaning_shows_matrices_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    right = matrix_stores.matrix_of_lane

    def backwards(context: Context, count: int) -> Expr:
        return sub(Int(8 * (count - 1)), right(context, count))

    monkeypatch.setattr(matrix_stores, "matrix_of_lane", backwards)
    outcome = meaning.check(subject(BY_FOUR))
    assert outcome.status == "failed" and "C[" in outcome.detail, outcome.detail


MUTANTS = {
    "rows exchanged": ("LM + lane % 8;", "LM + (lane ^ 1) % 8;", "C: "),
    "matrices exchanged": ("= (lane / 8) * 8;", "= (3 - lane / 8) * 8;", "C: "),
    "a matrix's pairs in another's place": (
        "out[matrix_n * VEC + e]",
        "out[(3 - matrix_n) * VEC + e]",
        "C: ",
    ),
    "the lane's own row named": ("LM + lane % 8;", "LM + lane / 4;", ""),
    "the swizzle missing": ("(slice_n ^ ((slice_m / 2 % 4) * 8))", "slice_n", "C: "),
    "the fence missing": (
        "gg_fence_async();\n        __syncthreads();\n\n        // store",
        "__syncthreads();\n\n        // store",
        "not fenced",
    ),
    "no barrier before the boxes": (
        "gg_fence_async();\n        __syncthreads();\n\n        // store",
        "gg_fence_async();\n\n        // store",
        "",
    ),
    "by the lanes within C alone": (
        "gg_stmatrix_x4(",
        "if (m < M) gg_stmatrix_x4(",
        "divergent warp",
    ),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", MUTANTS)
def test_a_run_of_a_mutant_shows_it(name: str) -> None:
    before, after, message = MUTANTS[name]
    outcome = cpu.check(mutant(BY_FOUR, before, after))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail
