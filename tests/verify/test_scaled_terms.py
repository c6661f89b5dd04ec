"""f32 from scaled f16 terms (wgmma): right kernels pass, and mistakes of the scales, in the
pre-pass and in the kernel, are detected on a CPU."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.numerics.operators import row_scale
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu
from gemmgen.proof.calls import Caller
from gemmgen.proof.decomposed import Decomposed

from .subjects import subject

ROWS = """\
target sm_90a
gemm C[m, n] = A[m, k] * B[n, k]
tile m=64 n=32 k=32
cache_shared A B
decompose into=f16
tensor_core via=wgmma promote=64
swizzle A B
double_buffer A B
async_copy A B via=tma
"""
COLUMNS = ROWS.replace("A[m, k] * B[n, k]", "A[k, m] * B[k, n]").replace(" n=32", " n=64")
MIXED = ROWS.replace("B[n, k]", "B[k, n]").replace("f16", "f16 products=4")
PRODUCER = f"{ROWS}persistent\nwarp_specialize producers=1 consumers=1\ncluster m=2\n"
PARTS_OF_K = f"{ROWS}split_k parts=2\nfuse_epilogue relu(acc + bias[n])\n"
SWAPPED = PRODUCER.replace("via=wgmma", "via=wgmma rows=n").replace("m=64 n=32", "m=32 n=64")
RIGHT = {
    "rows": ROWS,
    "columns": COLUMNS,
    "mixed": MIXED,
    "producer": PRODUCER,
    "parts of k": PARTS_OF_K,
    "swapped": SWAPPED,
}
DATA = ("normal", "wide integers", "NaN in A", "infinity in B")
CASES = (*(Case((65, 34, 300), data, 0.75, 1.0) for data in DATA), Case((65, 34, 0)))


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


@cache
def emitted(schedule: str) -> Emitted:
    return compile_source(Source(schedule))


def complaint_of(schedule: str, text: str) -> str | None:
    """What runs of ``text``, which is nearly that of ``schedule``, show."""
    return cpu.first_complaint(Caller(emitted(schedule)), text, CASES, warn=False)


@pytest.mark.by_default("rows")
@pytest.mark.parametrize("name", RIGHT)
def test_wide_integers_and_no_products_are_right(name: str) -> None:
    assert complaint_of(RIGHT[name], emitted(RIGHT[name]).text) is None


_UNSCALE = "* scale * B_scales[n]"
_INVERSE = "scales[row] = 1.0f / scale"
_OF_A = "M, K, A, lda, A_parts, A_scales"
_SHUFFLE = "gg_shuffle_xor(largest, 16)"
_ALL = "first < columns; first += 256"
_FEWER = "first < columns - 256; first += 256"
_WARPS = "    #pragma unroll\n    for (int part"
_BARRIER = f"    __syncthreads();\n{_WARPS}"
OF_ROWS = {
    "columns not undone": (_UNSCALE, "* scale", "C: "),
    "rows not undone": (_UNSCALE, "* B_scales[n]", "C: "),
    "undone twice": (_UNSCALE, f"{_UNSCALE} * B_scales[n]", "C: "),
    "another row": ("= A_scales[m];", "= A_scales[tile_m];", "C: "),
    "undone without a product": ("if (K > 0) {", "{", ""),
    "scales of B for those of A": (_OF_A, _OF_A.replace("A_scales", "B_scales"), ""),
    "no inverse": (_INVERSE, "scales[row] = scale", "C: "),
    "not stored": (f"if (threadIdx.x == 0) {_INVERSE};", "", ""),
    "stored by all": ("if (threadIdx.x == 0) scales", "scales", "race"),
    "signs kept": ("fabsf(x[", "(x[", "finite"),
    "a warp left out": ("part < 8", "part < 7", "C: "),
    "a half of a warp left out": (_SHUFFLE, _SHUFFLE.replace("16", "8"), "C: "),
    "a loop that ends early": (_ALL, _FEWER, ""),
    "no barrier": (_BARRIER, _WARPS, "race"),
    "not scaled": ("rest = scale * x[", "rest = x[", "C: "),
    "a scale of 2^16": ("268 - (exponent", "270 - (exponent", "finite"),
    "a plane less": ("part < 2", "part < 1", ""),
}
OF_COLUMNS = {
    "a warp left out": ("part < 64", "part < 63", "C: "),
    "another column": ("* B_scales[n]", "* B_scales[n / 2]", "C: "),
    "another lane's": ("found[part][threadIdx.x % 16]", "found[threadIdx.x % 16][part % 16]", ""),
    "no barrier": (_BARRIER, _WARPS, "race"),
    "stored by all": ("threadIdx.x / 16 == 0 && ", "", "race"),
    "stored beyond the last": (
        "threadIdx.x / 16 == 0 && column < columns",
        "threadIdx.x / 16 == 0",
        "",
    ),
}
MUTANTS = {
    **{f"rows: {name}": (ROWS, *each) for name, each in OF_ROWS.items()},
    **{f"columns: {name}": (COLUMNS, *each) for name, each in OF_COLUMNS.items()},
}
"""Schedule, text, what replaces it, and what the run says."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_text_are_found(name: str) -> None:
    schedule, before, after, said = MUTANTS[name]
    text = emitted(schedule).text
    assert before in text, "mend this test"
    found = complaint_of(schedule, text.replace(before, after))
    assert found is not None and said in found, found


def test_scales_are_powers_of_two_within_their_range() -> None:
    """Also of the greatest number, of none, and of an infinity."""
    numbers = np.float32([1.0, 1.5, 2.0**-20, 2.0**-112, 2.0**-130, 0.0, np.finfo(np.float32).max])
    scales = row_scale(numbers)
    assert (np.frexp(scales)[0] == 0.5).all()
    found = (numbers * scales)[numbers >= 2.0**-112]
    assert (found >= 2.0**14).all() and (found < 2.0**15).all()
    assert row_scale(np.float32(0.0)) == 2.0**126 and row_scale(np.float32(np.inf)) == 2.0**-114


def test_two_terms_have_what_the_bound_says() -> None:
    """All but 2^-23 of a number, or 2^-25 of what is scaled."""
    rng = np.random.default_rng(5)
    numbers = rng.standard_normal(4096) * np.exp2(rng.integers(-30, 15, 4096))
    numbers = np.clip(numbers, -(2.0**15), 2.0**15).astype(np.float32)
    high, low = Decomposed("f16", 2, 3, "m64nNk16_f32").split(numbers)
    lost = np.abs(numbers.astype(np.float64) - high - low)
    assert (lost <= np.maximum(2.0**-23 * np.abs(numbers), 2.0**-25)).all()
    assert (np.abs(low) <= np.maximum(2.0**-11 * np.abs(numbers), 2.0**-24)).all()
