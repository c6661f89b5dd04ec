"""Which names a schedule may choose."""

from __future__ import annotations

import random
import re

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source
from gemmgen.schedule.gemm_line import other_letter
from gemmgen.schedule.roles import extents

from .helpers import refused, schedule

_REFUSED = """
    int float4 double2 threadIdx dim3 NAN INFINITY M_PI __x x__y _X gg_mma and xor co_await char8_t
    concept asm half size_t cudaStream_t CUDA_VERSION FLT_MAX INT_MAX max fmaxf min expf fmaf sqrt
    relu where acc alpha beta tid warp lane stage next_stage out old value elem THREADS
    atomicInc time_t uint32_t value_2 printf assert NULL
    linux
    M N K BM BN BK TM WN PM LN lda ldb ldc A B C A_shared B_frag tile_k thread_m launch_gemm
    gemm m n
"""
REFUSED = [name for line in _REFUSED.splitlines() for name in line.split()]
ALLOWED = ["scale", "slope_1", "x", "_x", "Bias", "bm", "gamma", "a" * 63, "pad"]


@pytest.mark.parametrize(
    "name", [n for n in REFUSED if n not in {"acc", "alpha", "beta", "m", "n"}]
)
def test_a_parameter_is_refused_a_reserved_name(name: str) -> None:
    error = refused(f"fuse_epilogue acc + {name}")
    assert error.mistakes[0].span is not None
    assert error.hint


@pytest.mark.parametrize("name", [n for n in REFUSED if n not in {"gemm", "launch_gemm"}])
def test_a_kernel_is_refused_a_reserved_name(name: str) -> None:
    assert refused(f"kernel {name}").column == 8


@pytest.mark.parametrize(
    "name", [n for n in REFUSED if n not in {"A_shared", "B_frag", "A", "lda", "B", "ldb"}]
)
def test_a_tensor_is_refused_a_reserved_name(name: str) -> None:
    if name in {"C", "ldc", "M", "N", "K"}:
        return  # C may be ldc's owner; an extent gives way to a tensor
    assert refused(f"gemm C[m, n] = {name}[m, k] * Y[k, n]").line == 1


@pytest.mark.parametrize("name", ALLOWED)
def test_other_names_are_free(name: str) -> None:
    schedule(f"fuse_epilogue acc * {name}")
    schedule(f"gemm C[m, n] = {name}[m, k] * Y[k, n]")


OF_C = """
    gamma y0 index read puts strlen qsort getenv fopen sinf64 strtof32 f32addf64 f32xaddf128
    f128sqrtf64x strlcpy exp2m1f logp1f128 powr rnorm time_t GgArgument GG_WMMA
"""


@pytest.mark.parametrize("name", [*OF_C.split(), "a" * 64])
def test_a_kernel_is_refused_a_function_of_c(name: str) -> None:
    refused(f"kernel {name}")


@pytest.mark.parametrize("name", ["gemm_f32", "kernel", "state", "mmap_f32", "sgemm64", "w_t"])
def test_a_kernel_may_have_other_names(name: str) -> None:
    schedule(f"kernel {name}")


@pytest.mark.parametrize(
    "letter", ["int", "acc", "tid", "order", "interleave", "A", "M", "exp", "nan"]
)
def test_a_letter_is_refused_a_reserved_name(letter: str) -> None:
    assert refused(f"gemm C[{letter}, n] = A[{letter}, k] * B[k, n]").column == 8


def test_letters_may_be_words() -> None:
    found = schedule("gemm C[row, col] = A[row, x] * B[x, col]\ntile row=8 col=8 x=4")
    assert [a.name for a in found.directives[0].arguments] == ["row", "col", "x"]


def test_a_matrix_of_the_epilogue_takes_the_name_of_its_leading_dimension() -> None:
    schedule("fuse_epilogue acc + ldr + r[n]")
    refused("fuse_epilogue acc + r[m, n] + ldr")
    refused("fuse_epilogue acc + a[m, n]")
    refused("fuse_epilogue acc + R[m, n] + r[n, m]")


@pytest.mark.parametrize(
    "letter", ["shared", "next", "frag", "raw", "vector", "next_k", "next_stage"]
)
def test_a_letter_is_refused_what_makes_two_names_one(letter: str) -> None:
    """A_next is a staging register of A, and would be a coordinate in its tile along `next`."""
    error = refused(f"gemm C[{letter}, n] = A[{letter}, k] * B[k, n]")
    assert error.column == 8 and error.hint.startswith("any other lowercase name")


def test_a_vector_takes_the_name_of_its_registers() -> None:
    refused("fuse_epilogue acc + vec[n] * vec_frag")
    refused("fuse_epilogue acc * vec_frag + vec[n]")


@pytest.mark.parametrize("letter", "abcdefghijlopqrstuvwxyz")
def test_every_small_letter_may_be_a_letter(letter: str) -> None:
    for line in (
        f"gemm C[{letter}, n] = A[{letter}, k] * B[k, n]",
        f"gemm C[m, {letter}] = A[m, k] * B[k, {letter}]",
        f"gemm C[m, n] = A[m, {letter}] * B[{letter}, n]",
        f"gemm C[{letter}, m, n] = A[{letter}, m, k] * B[k, n]",
    ):
        schedule(line)


def test_an_extent_gives_way_to_a_tensor_a_size_and_a_word_of_c() -> None:
    """`gemm C[a, b] = A[a, e] * B[e, b]`: A and B are tensors, so a and b count otherwise."""
    found = schedule("gemm C[a, b] = A[a, e] * B[e, b]\nassume extent_a % 4 == 0")
    assert extents(found.gemm) == {"a": "extent_a", "b": "extent_b", "e": "E"}
    found = schedule("gemm C[t, m, bm] = A[t, m, k] * B[k, bm]")
    assert extents(found.gemm) == {"m": "M", "bm": "extent_bm", "k": "K", "t": "extent_t"}
    assert extents(schedule("gemm C[m, n] = K[m, k] * M[k, n]").gemm)["k"] == "extent_k"


@pytest.mark.by_default("int")
@pytest.mark.parametrize("bad", ["int", "float", "Row", "_k"])
def test_a_letter_that_a_hint_proposes_leaves_extents_their_names(bad: str) -> None:
    """Who follows it writes the capital of the letter for its extent, whatever tensors are
    called."""
    draw = random.Random(bad)
    for _ in range(40):
        c, a, b = draw.sample("IJPQRSTUVW", 3)
        rows, columns = draw.sample("ijpqrstuvwmn", 2)
        text = (
            f"gemm {c}[{rows}, {columns}] = {a}[{rows}, {bad}] * {b}[{bad}, {columns}]\n"
            f"assume {bad.upper().strip('_')} % 4 == 0\ntile {rows}=32 {columns}=32 {bad}=8\n"
        )
        with pytest.raises(ScheduleError) as error:
            compile_source(Source(text))
        hint = error.value.hint
        found = re.search(r"(?:such as|write) `(\w+)`", hint)
        assert found is not None, hint
        letter = found[1]
        followed = re.sub(rf"\b{bad}\b", letter, text)
        followed = re.sub(
            rf"\bassume {bad.upper().strip('_')}\b", f"assume {letter.upper()}", followed
        )
        if {rows.upper(), columns.upper()}.isdisjoint((c, a, b)):
            compile_source(Source(followed))
        assert letter not in (rows, columns) and letter.upper() not in (c, a, b)


def test_a_letter_is_proposed_however_many_names_there_are() -> None:
    assert other_letter("ijpqrstuvw") == "i1" and other_letter("IJPQRSTUVW") == "i1"
    assert other_letter(["i", "J"]) == "p"


def test_the_small_letter_is_no_hint_where_it_is_another() -> None:
    for text in (
        "gemm C[m, n] = A[m, M] * B[M, n]\n",
        "gemm P[m, n] = A[m, P] * B[P, n]\n",
    ):
        with pytest.raises(ScheduleError) as error:
            compile_source(Source(text))
        assert error.value.hint == "any other lowercase name will do, such as `i`"
