"""A line of emitted text leads back to its directive, and shared memory to its arrays."""

from __future__ import annotations

from pathlib import Path

import pytest
from emitted_kernels import checked, emitted

from gemmgen.pipeline import compile_source
from gemmgen.schedule.read import read_source
from gemmgen.sim.citations import blame
from gemmgen.sim.shared_symbols import unravel

TILE = "tile m=32 n=32 k=32"
CACHED = "cache_shared A[k, m] B[k, n]"
DOUBLE = "double_buffer A B"
GEMM = "gemm C[m, n] = A[m, k] * B[k, n]"


def line_of(text: str, part: str, nth: int = 1) -> int:
    lines = [i for i, line in enumerate(text.split("\n"), 1) if part in line]
    return lines[nth - 1]


@pytest.mark.parametrize(
    ("part", "nth", "directive"),
    [
        ("const int tile_m", 1, TILE),
        ("A_shared[0][A_k][A_m] =", 1, CACHED),
        ("__syncthreads();", 1, CACHED),
        ("for (int tile_k", 1, TILE),
        ("A_next = ", 1, DOUBLE),
        ("B_next = ", 1, DOUBLE),
        ("acc = fmaf", 1, TILE),
        ("A_shared[next_stage]", 1, DOUBLE),
        ("__syncthreads();", 2, DOUBLE),
        ("C[(long long)m * ldc + n] =", 1, GEMM),
        ("float A_shared[2]", 1, f"{CACHED}; pad A by=1; {DOUBLE}"),
    ],
)
def test_the_nearest_comment_that_encloses_a_line_is_cited(
    part: str, nth: int, directive: str
) -> None:
    text = emitted("double_buffered").text
    assert blame(text, line_of(text, part, nth)) == directive


def test_a_section_is_cited_by_the_comment_that_begins_it() -> None:
    """Comments within it cite only what it does not."""
    text = emitted("hopper/pingpong").text
    role = "warp_specialize producers=1 consumers=2 order=pingpong"
    assert text.count("(warp_specialize)") == 2  # the producer and the consumers
    assert blame(text, line_of(text, "while (!gg_try_wait(turn[consumer]")) == role
    assert blame(text, line_of(text, "phase = (phase + (stage + steps)")) == role


def test_a_step_of_the_epilogue_has_what_the_epilogue_cites_and_its_own() -> None:
    text = emitted("staged_output").text
    cached = "cache_shared A[k, m] B[k, n] C[m, n]"
    assert "// stage it in shared memory (vectorize)\n" in text
    found = blame(text, line_of(text, "copy4(&C_shared[slice_m]"))
    assert found.startswith(f"{cached}; ") and found.endswith("; vectorize C width=4")


def test_a_comment_within_a_section_that_cites_nothing_has_what_the_section_cites() -> None:
    schedule = Path(__file__).parents[1] / "golden" / "promotion_mma.sched"
    text = compile_source(read_source(str(schedule))).text
    assert "// promote the partial accumulators to f32\n" in text
    assert blame(text, line_of(text, "+= part[")).startswith("tensor_core via=mma promote=")


def test_a_kernel_without_comments_comes_from_its_gemm() -> None:
    text = emitted("naive").text
    assert blame(text, line_of(text, "acc = fmaf")) == GEMM


def test_a_line_that_is_not_there_comes_from_nothing() -> None:
    assert blame("a\nb", 3) == blame("a\nb", 0) == ""


def test_static_shared_arrays_are_found_with_their_shapes() -> None:
    arrays = checked("vectorized").shared
    known = {array.name: (array.bytes, array.shape) for array in arrays}
    assert known == {
        "A_shared": (2 * 8 * 132 * 4, (2, 8, 132)),
        "B_shared": (2 * 8 * 128 * 4, (2, 8, 128)),
    }


@pytest.mark.proof
def test_arrays_within_dynamic_shared_memory_are_distinguished() -> None:
    a, b = checked("warp_tiled").shared
    assert (a.name, a.shape) == ("A_shared", (2, 16, 132))
    assert (b.name, b.offset, b.shape) == ("B_shared", a.offset + a.bytes, (2, 16, 256))
    assert b.index(4 * (256 * 16 + 256 + 7)) == (1, 1, 7)


def test_an_index_beyond_the_shape_counts_on() -> None:
    assert unravel(0, (2, 3)) == (0, 0)
    assert unravel(7, (2, 3)) == (2, 1)
    assert unravel(7, ()) == (7,)
