"""Tensor cores that multiply bytes and tf32: right kernels hold, and wrong scales, missing
saturation and rounding, and exchanged registers are seen on a CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.numerics import operators
from gemmgen.proof import cpu, meaning
from gemmgen.proof.outcome import Subject

from .subjects import subject

TILES = """\
tile m=64 n=32 k=64
cache_shared A B[n, k]
warp_tile m=32 n=16
tensor_core via=mma
"""
AHEAD = f"""\
gemm C[m, n] = A[m, k] * B[n, k]
{{head}}
{TILES.replace('B[n, k]', 'B C')}vectorize A.global B.global width=16
vectorize C width=2
swizzle A B
double_buffer A B stages=3
double_buffer A.register B.register
async_copy A B via=cp_async
{{epilogue}}"""
SCALED = "fuse_epilogue acc * SA[m] * SB[n]\n"


def ahead(head: str, epilogue: str = "") -> str:
    return AHEAD.format(head=head, epilogue=epilogue)


FP8 = "dtype A=e4m3 B=e5m2 C={c} SA=f32 SB=f32\ntarget sm_89"
TF32 = ahead("dtype tf32", "fuse_epilogue acc * SA[m] + C[m, n]\n").replace("width=16", "width=4")
RIGHT = {
    "i32": f"dtype i8\n{TILES}",
    "transposed": f"dtype A=i8 B=i8 C=f32\n{TILES.replace('A B', 'A[m, k] B')}",
    "i8": ahead("dtype A=i8 B=i8 C=i8", SCALED),
    "i32_ahead": ahead("dtype i8"),
    "parts": ahead("dtype i8", "split_k parts=3\n"),
    "walk": ahead("dtype A=i8 B=i8 C=f32", "persistent\n"),
    "e4m3": f"target sm_89\ndtype e4m3\n{TILES}",
    "scaled": ahead(FP8.format(c="bf16"), SCALED),
    "to_e4m3": ahead(FP8.format(c="e4m3"), SCALED),
    "tf32": TF32,
    "tf32_bias": f"dtype tf32\n{TILES}fuse_epilogue relu(acc + bias[n])\n",
    "tf32_by_threads": "dtype A=tf32\ntile m=16 n=16 k=8\nregister_block m=2 n=2\n",
    "e5m2": ahead("dtype A=e5m2 B=e4m3 C=f32\ntarget sm_89", "split_k parts=2\n"),
}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("layout", ("C[n, m] = A[m, k] * B[n, k]", "C[m, n] = A[k, m] * B[k, n]"))
@pytest.mark.parametrize("head", ("dtype i8", "dtype e4m3\ntarget sm_89", "dtype tf32"))
def test_other_storage_orders_are_transposed_on_their_way_in(layout: str, head: str) -> None:
    tiles = TILES.replace("A B", "A[m, k] B")
    outcome = cpu.check(subject(f"gemm {layout}\n{head}\n{tiles}"))
    assert outcome.status == "passed", outcome


MISTAKES = {
    "a scale of another row": ("i8", "* SA[m] *", "* SA[tile_m + thread_m] *", "C: "),
    "a scale of another row of floats": ("scaled", "* SA[m] *", "* SA[tile_m + thread_m] *", "C: "),
    "a scale of another column": ("scaled", "SB[n + e]", "SB[n]", "C: "),
    "registers of A exchanged": ("i8", '(a[0]), "r"(a[1])', '(a[1]), "r"(a[0])', "C: "),
    "k of A exchanged": ("scaled", '(a[1]), "r"(a[2])', '(a[2]), "r"(a[1])', "C: "),
    "k of B exchanged": ("i8", '(b[0]), "r"(b[1])', '(b[1]), "r"(b[0])', "C: "),
    "the types of A and B exchanged": ("scaled", "f32.e4m3.e5m2", "f32.e5m2.e4m3", "C: "),
    "the type of A for B": ("scaled", "f32.e4m3.e5m2", "f32.e4m3.e4m3", "C: "),
    "an i8 that does not saturate": (
        "i8",
        'asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(integer) : "f"(number));',
        "integer = static_cast<int>(rintf(number));",
        "C: ",
    ),
    "an e4m3 that does not saturate": (
        "to_e4m3",
        "return static_cast<unsigned char>(pair);",
        "return number > 448 ? 0x7f : static_cast<unsigned char>(pair);",
        "C: ",
    ),
    "an operand that is not rounded": (
        "tf32",
        'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fragment[i]) : "r"(fragment[i]));',
        "continue;",
        "C: ",
    ),
    "a truncated operand": (
        "tf32",
        'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fragment[i]) : "r"(fragment[i]));',
        "fragment[i] &= 0xffffe000u;",
        "C: ",
    ),
    "rows of A of tf32 exchanged": ("tf32", '(a[0]), "r"(a[1])', '(a[1]), "r"(a[0])', "C: "),
    "k of B of tf32 exchanged": ("tf32", '(b[0]), "r"(b[1])', '(b[1]), "r"(b[0])', "C: "),
    "rows of 8 bytes": ("i8", "A_row_k = (lane / 16) * 16", "A_row_k = (lane / 16) * 8", "misalig"),
    "a step of k of halves": ("i8", "IK = 32", "IK = 16", "out of bounds"),
}
"""Of the text, by the kernel that it is of."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_run_of_the_text_shows_it(name: str) -> None:
    of, before, after, message = MISTAKES[name]
    right = subject(RIGHT[of])
    assert before in right.emitted.text
    wrong = replace(right.emitted, text=right.emitted.text.replace(before, after))
    outcome = cpu.check(Subject(wrong))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail


SATURATING = operators.TO_BITS["to_e4m3"]


def _wrapped(number: operators.Value) -> operators.Value:
    whole = np.rint(np.asarray(number, np.float64))
    return (whole + 128) % 256 - 128


def _not_a_number(number: operators.Value) -> operators.Value:
    exact = SATURATING(number)
    return np.where(np.abs(np.asarray(number)) > 448, 0x7F, exact)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "table", "function", "wrong"),
    (
        ("i8", operators.TO_INTEGERS, "to_i8", _wrapped),
        ("to_e4m3", operators.TO_BITS, "to_e4m3", _not_a_number),
    ),
)
def test_the_programs_meaning_shows_missing_saturation(
    name: str,
    table: dict[str, object],
    function: str,
    wrong: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = subject(RIGHT[name])
    monkeypatch.setitem(table, function, wrong)
    outcome = meaning.check(right)
    assert outcome.status == "failed" and "C[" in outcome.detail, outcome.detail
