"""Every schedule computes its problem: after each pass, and as emitted text on the CPU."""

from __future__ import annotations

import pytest
from pipeline.running import call, check, emitted, met

from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.nodes import Program
from gemmgen.pipeline import Emitted, rewrite
from gemmgen.proof.meaning import difference
from gemmgen.proof.shapes import fit
from passes.schedules import CASES

CALLS = (
    call(1, 1, 1, pad=3),
    call(2, 3, 5, 0.7, -1.0, order="shuffled", tight=True),
    call(33, 66, 19, 0.7, 0.7, pad=1, order="descending"),
    call(33, 66, 19, tight=True),
    call(37, 129, 41, -1.0, 1.0, pad=4, order="shuffled"),
    call(64, 64, 32, order="descending", tight=True),
    call(31, 63, 0, 0.7, -1.0, pad=2, order="shuffled"),
)
"""Ragged on every side, K below a step, past three and four stages, and none at all."""


def shape_of(program: Program, kernel: Emitted) -> Shape:
    """A small shape with a ragged second tile along each letter."""
    m, n = (program.main.work.size(x) + 3 for x in (program.problem.m, program.problem.n))
    return fit(kernel, (m, n, 11))


@pytest.mark.by_default("three stages")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", CASES)
def test_each_pass_keeps_the_meaning(name: str) -> None:
    kernel = emitted(CASES[name].text)
    for step in rewrite(kernel.schedule):
        complaint = difference(step, (shape_of(step.program, kernel),))
        assert complaint is None, f"after {step.directive}: {complaint}"


@pytest.mark.by_default("no step along k")
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", CASES)
def test_the_text_gives_the_reference_in_every_bit(name: str) -> None:
    kernel = emitted(CASES[name].text)
    for case in CALLS:
        check(kernel, met(case, kernel), CASES[name].want)


def test_extents_assumed_equal_are_one_parameter() -> None:
    kernel = emitted("assume M == N\ntile m=16 n=16\n")
    check(kernel, call(33, 33, 5, 0.7, -1.0))
