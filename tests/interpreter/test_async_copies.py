"""Asynchronous copies, interpreted: what lands when, and what only one of the extremes shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gemmgen.interpreter.async_copies import LANDINGS, Landing, landings_of
from gemmgen.interpreter.interpret import Trap, interpret
from gemmgen.ir.control import Assign, Block, For, If
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.instruction import instruction
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Node, executes

from .kernels import X, of

PARAMS = (
    Param("M", "extent"),
    Param("x", "tensor", ("m",)),
    Param("out", "tensor", ("m",), written=True),
)
COMMIT, BARRIER = instruction("commit_group"), instruction("sync_block")
OUT, TILE = Element("out", (X,)), Element("tile", (X,))
READ = Assign(OUT, TILE)
both = pytest.mark.parametrize("landing", LANDINGS)


def program(*body: Node) -> LoweredProgram:
    """A block of four threads and eight elements of shared memory."""
    interface = Interface("test", PARAMS, (4, 1), (("M", 4),), (), 0, 0, ())
    tile = SharedArray("tile", "f32", (Int(8),), (8,))
    return LoweredProgram((LoweredKernel(interface, (), (), (tile,), body, 4),))


def run(landing: Landing, *body: Node) -> list[float]:
    """``out`` after ``body``; x is 10, 11, ... of eight elements."""
    out = np.zeros(4, np.float32)
    x = np.arange(10, 18, dtype=np.float32)
    interpret(program(*body), {"M": 4, "x": x, "out": out}, landing)
    return [float(value) for value in out]


def wait(pending: int) -> Node:
    return instruction("wait_group", Int(pending))


def copy(first: Expr | int = X, to: Expr | int = X, width: int = 1, valid: int = 1) -> Node:
    target, source = Element("tile", (of("+", to),)), Element("x", (of("+", first),))
    return instruction("copy_async", target, source, Int(valid), dtype="f32", width=width)


@both
def test_a_copy_is_there_after_the_wait_for_its_group(landing: Landing) -> None:
    assert run(landing, copy(), COMMIT, wait(0), BARRIER, READ) == [10, 11, 12, 13]


@both
def test_a_wait_leaves_the_latest_groups_under_way(landing: Landing) -> None:
    second = copy(of("+", X, 4), of("+", X, 4))
    body = (copy(), COMMIT, second, COMMIT, COMMIT, wait(2), BARRIER, READ, wait(0))
    assert run(landing, *body) == [10, 11, 12, 13]


def test_late_shows_a_read_without_a_wait() -> None:
    body = (copy(), COMMIT, READ, wait(0))
    assert all(map(math.isnan, run("late", *body)))
    assert run("early", *body) == [10, 11, 12, 13]


def test_late_shows_one_group_too_few_waited_for() -> None:
    body = (copy(), COMMIT, COMMIT, wait(2), READ, wait(0))
    assert all(map(math.isnan, run("late", *body)))


def test_early_shows_a_store_before_the_wait() -> None:
    """Late, the copy lands upon the store; early, the store stays."""
    body = (copy(), COMMIT, Assign(TILE, Element("x", (Int(7),))), wait(0), BARRIER, READ)
    assert run("late", *body) == [10, 11, 12, 13]
    assert run("early", *body) == [17, 17, 17, 17]


@both
def test_a_stage_copied_into_while_it_is_read_shows(landing: Landing) -> None:
    other = copy(of("+", X, 4))
    got = run(landing, copy(), COMMIT, wait(0), BARRIER, other, COMMIT, READ, wait(0))
    assert got != [10, 11, 12, 13]


@both
def test_a_group_never_committed_is_not_waited_for(landing: Landing) -> None:
    with pytest.raises(Trap, match=r"tile\[0\]: a copy that is not waited for, by .*\(0, 0\)"):
        run(landing, copy(), wait(0), BARRIER, READ)


@both
def test_refuses_to_end_with_a_copy_under_way(landing: Landing) -> None:
    with pytest.raises(Trap, match="a copy that is not waited for"):
        run(landing, copy(), COMMIT)


@both
@pytest.mark.parametrize("valid", range(5))
def test_zeros_stand_after_the_valid_elements(landing: Landing, valid: int) -> None:
    first = If(of("<", X, 1), (copy(4, 0, 4, valid),))
    got = run(landing, first, COMMIT, wait(0), BARRIER, READ)
    assert got == [14.0, 15.0, 16.0, 17.0][:valid] + [0.0] * (4 - valid)


@both
def test_a_copy_of_nothing_reads_nothing(landing: Landing) -> None:
    assert run(landing, copy(1 << 20, X, 1, 0), COMMIT, wait(0), BARRIER, READ) == [0, 0, 0, 0]


@both
def test_refuses_to_read_beyond_the_matrix(landing: Landing) -> None:
    with pytest.raises(Trap, match=r"x\[8\]: out of bounds"):
        run(landing, copy(of("+", X, 5)), COMMIT, wait(0))


@both
@pytest.mark.parametrize(("first", "to", "buffer"), [(2, 0, "x"), (0, 2, "tile")])
def test_both_sides_of_a_wide_copy_are_aligned(
    landing: Landing, first: int, to: int, buffer: str
) -> None:
    with pytest.raises(Trap, match=rf"{buffer}\[2\]: misaligned access of width 4"):
        run(landing, copy(first, to, 4, 0), COMMIT, wait(0))


def test_programs_with_asynchronous_copies_have_both_extremes() -> None:
    assert landings_of(program(copy(), COMMIT, wait(0))) == LANDINGS
    assert landings_of(program(READ)) == ("late",)


def test_nodes_are_found_at_any_depth() -> None:
    inner = (copy(),)
    for outer in (
        For("i", Int(0), Int(2), Int(1), inner),
        If(of("<", X, 1), (), inner),
        Block("", (), inner),
    ):
        assert executes((READ, outer), "copy_async")
        assert not executes((READ, outer), "wait_group")
