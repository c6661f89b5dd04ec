"""Tensor cores that multiply f64, whose operands lanes load element by element: right kernels hold,
and exchanged lanes, registers and steps are seen on a CPU."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.ir.atoms import ATOMS, VIA
from gemmgen.ir.edit import contraction
from gemmgen.proof import cpu
from gemmgen.proof.outcome import Subject

from .subjects import subject

TILES = """\
dtype f64
{target}tile m=32 n=32 k={k}
cache_shared A B
warp_tile m=16 n=16
tensor_core via=mma
"""
HOPPER = "target sm_90\n"
AHEAD = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype f64
target sm_90
tile m=32 n=48 k=16
cache_shared A B C
warp_tile m=32 n=24
tensor_core via=mma
vectorize A.global B.global C width=2
swizzle A by=4 every=1 chunk=4
swizzle B by=4 every=1 chunk=4
double_buffer A B stages=3
async_copy A B via=cp_async
persistent
fuse_epilogue relu(acc + bias[n])
"""
RIGHT = {
    "m8n8k4": TILES.format(target="", k=8),
    "m16n8k4": TILES.format(target=HOPPER, k=12),
    "m16n8k8": TILES.format(target=HOPPER, k=24) + "pad A B by=4\nsplit_k parts=2\n",
    "m16n8k16": AHEAD,
    "steps": TILES.format(target="", k=16)
    + "double_buffer A B\ndouble_buffer A.register B.register\n",
}


@pytest.mark.proof
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


def test_each_instruction_of_f64_has_a_kernel() -> None:
    atoms = {contraction(subject(text).emitted.program.main).atom for text in RIGHT.values()}
    assert atoms == {each for each in VIA["mma"] if "f64" in ATOMS[each].types}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("c", ("m, n", "n, m"))
@pytest.mark.parametrize("tiles", ("A[m, k] B[n, k]", "A[k, m] B[k, n]"))
@pytest.mark.parametrize("target", ("", HOPPER))
def test_tiles_along_either_letter_are_right(target: str, tiles: str, c: str) -> None:
    a, b = itertools.islice(tiles.replace("B", "").replace("A", "").split("]"), 2)
    text = TILES.format(target=target, k=16).replace("cache_shared A B", f"cache_shared {tiles}")
    outcome = cpu.check(subject(f"gemm C[{c}] = A{a.strip()}] * B{b.strip()}]\n{text}"))
    assert outcome.status == "passed", outcome


LANES = "lane / 4, {x}_lane_k = lane % 4;"
EXCHANGED = "lane % 8, {x}_lane_k = lane / 8;"
MISTAKES = {
    "rows and k of A": ("m8n8k4", LANES.format(x="A"), EXCHANGED.format(x="A")),
    "columns and k of B": ("m8n8k4", LANES.format(x="B"), EXCHANGED.format(x="B")),
    "columns of accumulators": ("m8n8k4", '(acc[0]), "+d"(acc[1])', '(acc[1]), "+d"(acc[0])'),
    "rows of accumulators": (
        "m16n8k4",
        '(upper[0]), "+d"(upper[1]), "+d"(lower[0])',
        '(lower[0]), "+d"(upper[1]), "+d"(upper[0])',
    ),
    "A for B": ("m8n8k4", '"d"(a[0]), "d"(b[0])', '"d"(b[0]), "d"(a[0])'),
    "rows of A": ("m16n8k4", '(a[0]), "d"(a[1])', '(a[1]), "d"(a[0])'),
    "k of A": ("m16n8k8", '(a[1]), "d"(a[2])', '(a[2]), "d"(a[1])'),
    "k of B": ("m16n8k16", '(b[1]), "d"(b[2])', '(b[2]), "d"(b[1])'),
    "registers 2 apart": ("m16n8k8", "reg_k * 4]", "reg_k * 2]"),
    "the rows below left out": ("m16n8k16", "reg_m * 8]", "reg_m * 0]"),
    "a swizzle on one side": ("m16n8k16", "^ ((A_lane_m % 4) * 4)", "^ ((A_lane_m % 4) * 0)"),
    "fragments of this step again": ("steps", "[A_lane_k + k + IK]", "[A_lane_k + k]"),
    "a step of k of halves": ("m8n8k4", "IK = 4", "IK = 8"),
}
"""Of the text, by the kernel that it is of."""


@pytest.mark.by_default("columns of accumulators")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_run_of_the_text_shows_it(name: str) -> None:
    of, before, after = MISTAKES[name]
    right = subject(RIGHT[of])
    assert before in right.emitted.text
    wrong = replace(right.emitted, text=right.emitted.text.replace(before, after))
    outcome = cpu.check(Subject(wrong))
    assert outcome.status == "failed" and "C" in outcome.detail, outcome.detail
