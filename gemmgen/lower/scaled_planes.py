"""Pre-passes that scale what they split: the largest magnitude of a row, or of a column, chooses
the power of two that its elements are multiplied by (``ir/decompositions.py``).

A block has a row, which its threads read together, or 16 columns, whose rows it reads 64 at a
time.  It reads them twice; the second time they come from caches.  NaNs are passed over, and an
infinity makes a scale that leaves it one.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.base.record import record
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.lowered import SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.planes import SCALED
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Node
from gemmgen.lower import element_terms
from gemmgen.lower.context import X
from gemmgen.lower.element_terms import COLUMN, ROW, element, stored_terms

_LARGEST, _SCALE, _FIRST = Var("largest"), Var("scale"), Var("first")
_WARP, _LANE = X / WARP, X % WARP
_THREADS = 256
_ACROSS, _DOWN = 16, 64
"""Columns of a block, 64 bytes, and rows that it reads at a time."""
_TOGETHER = 8
"""Loads of a thread in flight."""


@record
class ScaledLines:
    """How a block reads: of ``tile``, an extent, it has this many; its threads leave what is the
    largest so far in ``array``."""

    tile: tuple[str, int]
    threads: int
    array: SharedArray
    body: Callable[[Param], tuple[Node, ...]]


def _by_rows(param: Param) -> tuple[Node, ...]:
    def each(body: tuple[Node, ...]) -> Node:
        here = If[Node](Binary("<", COLUMN, element_terms.COLUMNS), body)
        place = Define(COLUMN.name, _FIRST + X)
        return _loop(element_terms.COLUMNS, _THREADS, (place, here))

    distances = (Int(WARP >> step) for step in range(1, WARP.bit_length()))
    of_warp = (_larger(Call("shuffle_xor", (_LARGEST, distance))) for distance in distances)
    first = If[Node](Binary("==", _LANE, Int(0)), (Assign(_of_warps(_WARP), _LARGEST),))
    largest = (*of_warp, first, *_joined(_THREADS // WARP, _of_warps))
    return (
        Define(ROW.name, Var("blockIdx.x")),
        *_largest("row", each, largest),
        *_scaled(param, Binary("==", X, Int(0)), ROW, each),
    )


def _by_columns(param: Param) -> tuple[Node, ...]:
    inside = Binary("<", COLUMN, element_terms.COLUMNS)
    down, across = X / _ACROSS, X % _ACROSS

    def each(body: tuple[Node, ...]) -> Node:
        here = If[Node](Binary("&&", Binary("<", ROW, element_terms.ROWS), inside), body)
        return _loop(element_terms.ROWS, _DOWN, (Define(ROW.name, _FIRST + down), here))

    def of_rows(number: Expr) -> Element:
        return Element("found", (number, across))

    largest = (Assign(of_rows(down), _LARGEST), *_joined(_DOWN, of_rows))
    chosen = Binary("&&", Binary("==", down, Int(0)), inside)
    return (
        Define(COLUMN.name, Var("blockIdx.x") * _ACROSS + across),
        *_largest("column", each, largest),
        *_scaled(param, chosen, COLUMN, each),
    )


def _of_warps(warp: Expr) -> Element:
    return Element("found", (warp,))


def _loop(extent: Var, step: int, body: tuple[Node, ...]) -> Node:
    return For[Node](_FIRST.name, Int(0), extent, Int(step), body, unroll=_TOGETHER)


def _larger(other: Expr) -> Node:
    return Assign(_LARGEST.name, Call("largest", (_LARGEST, other)))


def _joined(count: int, place: Callable[[Expr], Element]) -> tuple[Node, ...]:
    """After all threads have left theirs: the largest of them."""
    other = _larger(place(Var("part")))
    loop = For[Node]("part", Int(0), Int(count), Int(1), (other,), unroll=True)
    return (instruction("sync_block"), loop)


def _largest(
    what: str, each: Callable[[tuple[Node, ...]], Node], joined: tuple[Node, ...]
) -> tuple[Node, ...]:
    found = each((_larger(Call("abs", (element(),))),))
    start = Define(_LARGEST.name, Float(0.0), "float", mutable=True)
    return (Block(f"the largest magnitude of the {what}", (), (start, found, *joined)),)


def _scaled(
    param: Param, chosen: Expr, number: Var, each: Callable[[tuple[Node, ...]], Node]
) -> tuple[Node, ...]:
    """The scale, whose inverse one thread stores, and the terms of what it scales."""
    inverse = Assign(Element(SCALED, (number,)), Float(1.0) / _SCALE)
    note = element_terms.note(param, "scale * x")
    return (
        Define(_SCALE.name, Call("row_scale", (_LARGEST,)), "float"),
        If[Node](chosen, (inverse,)),
        Block(note, (), (each(stored_terms(param, _SCALE * element())),)),
    )


_WARPS = _THREADS // WARP
ROWS = ScaledLines(
    (element_terms.ROWS.name, 1),
    _THREADS,
    SharedArray("found", "f32", (Int(_WARPS),), (_WARPS,)),
    _by_rows,
)
COLUMNS = ScaledLines(
    (element_terms.COLUMNS.name, _ACROSS),
    _ACROSS * _DOWN,
    SharedArray("found", "f32", (Int(_DOWN), Int(_ACROSS)), (_DOWN, _ACROSS)),
    _by_columns,
)
