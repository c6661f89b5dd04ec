"""Mutants of lowered programs whose meaning is another one: refuted, each."""

from __future__ import annotations

import pytest

from gemmgen.proof.equivalence import nearest, same_meaning
from gemmgen.prove.prover import prove
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .lowered_mutants import LoweredMutant, mutants
from .planting import emitted

SHAPE = (35, 33, 37)
EACH = {"vector": 17, "ring": 31, "staged": 41}
"""Of each program, one mutant in this many is taken."""
ENDLESS = ("1: 0",)
"""Changes of a loop's step that make it endless."""


def sample() -> list[tuple[str, LoweredMutant]]:
    found: list[tuple[str, LoweredMutant]] = []
    for name, each in EACH.items():
        own = [one for one in mutants(emitted(name).lowered) if one.change not in ENDLESS]
        found += [(name, one) for one in own[::each]]
    return found


SAMPLE = sample()


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    ("name", "mutant"), SAMPLE, ids=[f"{name}: {one.change}" for name, one in SAMPLE]
)
def test_a_mutant_of_another_meaning_is_refuted(name: str, mutant: LoweredMutant) -> None:
    problem = emitted(name).program.problem
    try:
        wrong = same_meaning(mutant.program, problem, nearest([mutant.program], problem, SHAPE))
    except (KeyError, AssertionError) as undeclared:
        pytest.skip(f"it names what is not declared: {undeclared}"[:60])
    proof = prove(mutant.program.kernels[0], problem, 60.0)
    if wrong is not None:
        assert proof.status == "refuted", wrong.text()


def test_the_sample_has_changes_of_many_kinds() -> None:
    assert len(SAMPLE) > 30 and len({one.change for _, one in SAMPLE}) > 25
