"""Blocks of a cluster, interpreted side by side: mistakes between them are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from passes.schedules import GOLDEN

from gemmgen.base.source import Source
from gemmgen.ir.control import Define
from gemmgen.ir.expr import Binary, Int, Var
from gemmgen.ir.instruction import is_instruction
from gemmgen.ir.traversal import rebuilt
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule, make_concrete
from gemmgen.proof.equivalence import same_meaning

SHAPE = (35, 140, 20)
"""A cluster along m, and two along n; the second one has tiles beyond C."""


def difference(rule: Callable[[Any], Any] = lambda node: None) -> str:
    """What is found in the kernel of 2 x 2 blocks, whose nodes are as ``rule`` makes them; where it
    gives None they stay."""

    def each(node: Any) -> Any:
        new = rule(node)
        return rebuilt(node, each) if new is None else new

    program = compile_schedule(parse_schedule(Source(GOLDEN["clusters"][1].text))).program
    lowered = make_concrete(program)
    kernels = tuple(replace(kernel, body=each(kernel.body)) for kernel in lowered.kernels)
    found = same_meaning(replace(lowered, kernels=kernels), program.problem, SHAPE)
    return found.text() if found else ""


def arrives_at_the_first_block(node: Any) -> Any:
    if is_instruction(node, "arrive_at"):
        return replace(node, operands=(node.operands[0], Int(0)))
    return None


def arrives_at_a_fifth_block(node: Any) -> Any:
    if is_instruction(node, "arrive_at"):
        barrier, rank = node.operands
        return replace(node, operands=(barrier, rank + 1))
    return None


def counts_the_warps_of_one_block(node: Any) -> Any:
    if is_instruction(node, "init_barrier") and node.operands[0].buffer == "empty":
        return replace(node, operands=(node.operands[0], Var("CONSUMERS") / 32))
    return None


def copies_to_its_own_block(node: Any) -> Any:
    if is_instruction(node, "multicast_box"):
        return replace(node, name="load_box", operands=node.operands[:-1])
    return None


def copies_to_no_block(node: Any) -> Any:
    if is_instruction(node, "multicast_box"):
        return replace(node, operands=(*node.operands[:-1], Int(0)))
    return None


def copies_to_the_first_column(node: Any) -> Any:
    if is_instruction(node, "multicast_box") and node.operands[1] == Var("B"):
        return replace(node, operands=(*node.operands[:-1], Var("B_BLOCKS")))
    return None


def copies_the_first_rows(node: Any) -> Any:
    """From the tensor; to the right place."""
    if is_instruction(node, "multicast_box") and node.operands[1] == Var("B"):
        *copied, column, _, blocks = node.operands
        return replace(node, operands=(*copied, column, Var("tile_k"), blocks))
    return None


def shares_another_way(node: Any) -> Any:
    if isinstance(node, Define) and node.name == "rank_m":
        return replace(node, value=Binary("%", Var("rank"), Var("CLUSTER_N")))
    return None


HANGS = "no thread can go on"
MISTAKES = {
    arrives_at_the_first_block: HANGS,
    arrives_at_a_fifth_block: "of block 4 of a cluster of 4",
    counts_the_warps_of_one_block: HANGS,
    copies_to_its_own_block: HANGS,
    copies_to_no_block: "of no block of the cluster",
    copies_to_the_first_column: "",
    copies_the_first_rows: "should be",
    shares_another_way: "",
}


@pytest.mark.by_default("arrives_at_a_fifth_block", "copies_to_its_own_block")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_finds(mistake: Callable[[Any], Any]) -> None:
    found = difference(mistake)
    assert found and MISTAKES[mistake] in found, found


@pytest.mark.proof
def test_nothing_is_found_without_a_mistake() -> None:
    assert not difference()
