"""Nodes of asynchronous multiplications as text, and what a warpgroup's lanes hold."""

from __future__ import annotations

import itertools

import pytest

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.expr import Binary, Element, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.warpgroup_matrices import UNIT, DescribeMatrix

STEP = Binary("/", Binary("*", Var("k"), Int(2)), Int(UNIT))
FIRST = Element("A_shared", (Var("stage"), Binary("*", Var("group"), Int(64)), Int(0)))
ACCUMULATORS = Element("acc", (Int(0), Int(0))), Element("acc", (Int(1), Int(0)))
MULTIPLY = instruction(
    "wgmma_multiply",
    *ACCUMULATORS,
    Var("A_matrix") + STEP,
    Var("B_matrix"),
    Var("accumulate"),
    atom="m64nNk16",
    n=256,
    a="bf16",
    b="bf16",
    acc="f32",
    a_mn_major=True,
)


@pytest.mark.parametrize(
    "node",
    (
        instruction("wgmma_fence"),
        instruction("wgmma_commit"),
        instruction("wgmma_wait", Int(1)),
        instruction("wgmma_end", Var("acc")),
        DescribeMatrix("A_matrix", FIRST, 128, Int(1024)),
        DescribeMatrix("B_matrix", FIRST, 128, Binary("*", Var("BK"), Int(128)), mn_major=True),
        MULTIPLY,
    ),
)
def test_nodes_are_read_as_they_are_printed(node: object) -> None:
    assert parse_ir(print_ir(node), type(node)) == node


def test_a_warpgroup_has_rows_of_each_of_its_warps() -> None:
    layout = ATOMS["m64nNk16"].accumulators
    assert (
        layout and layout.lanes == 128 and layout.warps("row") == 4 and layout.warps("column") == 1
    )
    # The PTX ISA, "WGMMA .m64nNk16 register fragment layout for accumulator matrix D".
    for lane, i in itertools.product(range(128), range(layout.registers)):
        row = lane // 32 * 16 + lane % 32 // 4 + i // 2 * 8
        assert layout.element(lane, i) == (row, lane % 4 * 2 + i % 2)
        assert layout.owner(*layout.element(lane, i)) == (lane, i)
