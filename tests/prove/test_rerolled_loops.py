"""Loops over rounds of tiles are walked as loops over tiles: that they do the same is executed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmgen.ir.text import print_ir
from gemmgen.proof.equivalence import same_meaning
from gemmgen.prove.rerolled_loops import rerolled
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .planting import emitted

UNROLLED = ("unrolled", "swizzle", "swizzled")


@pytest.mark.parametrize("name", UNROLLED)
def test_a_rerolled_kernel_computes_the_same(name: str) -> None:
    kernel = emitted(name)
    (lowered,) = kernel.lowered.kernels
    own = rerolled(lowered)
    assert " round_" in print_ir(lowered) and "for round_" not in print_ir(own)
    program = replace(kernel.lowered, kernels=(own,))
    for k in (0, 1, 16, 17, 96, 97, 209):
        assert same_meaning(program, kernel.program.problem, (65, 17, k)) is None


def test_another_kernel_is_walked_as_it_is() -> None:
    (lowered,) = emitted("ring").lowered.kernels
    assert rerolled(lowered).body is lowered.body
