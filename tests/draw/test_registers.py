"""Registers as drawn are those of the machine code, with its conflicts."""

from __future__ import annotations

import re

import pytest

from gemmgen.base.errors import UsageError
from gemmgen.draw import registers
from gemmgen.gpu import compiler
from tests.draw.reading import scene_of, scene_of_text

COMPILED = compiler.available()
pytestmark = pytest.mark.skipif(COMPILED is not None, reason=str(COMPILED))
FUSED = """\
tile            m=128 n=128 k=8
cache_shared    A[k, m] B[k, n]
register_block  m=8 n=8 order=serpentine
pad             A by=4
double_buffer   A B
fuse_epilogue   relu(acc + bias[n])
"""
ADD = re.compile(r"R(\d+) \+= R(\d+) \* R(\d+)")


@pytest.mark.proof
def test_each_accumulator_is_drawn_once_and_a_conflict_is_of_one_bank() -> None:
    drawing = registers.draw(scene_of("fused"))
    cells = [(cell, found) for cell in drawing.cells if (found := ADD.fullmatch(cell.about))]
    accumulators = [found[1] for _, found in cells]
    assert len(accumulators) == len(set(accumulators)) >= 64  # ptxas renames some
    conflicts = [[int(x) % 2 for x in found.groups()] for c, found in cells if c.strong]
    assert conflicts and all(len(set(banks)) == 1 for banks in conflicts)
    assert "34 of 512 FFMA fetch three registers of one bank" in drawing.description


@pytest.mark.proof
def test_another_order_has_no_conflict() -> None:
    drawing = registers.draw(scene_of_text(FUSED))
    assert drawing.description.startswith("0 of 512 FFMA ")


@pytest.mark.proof
def test_tensor_cores_have_other_registers() -> None:
    with pytest.raises(UsageError, match="has no FFMA"):
        registers.draw(scene_of("tensor_core"))
