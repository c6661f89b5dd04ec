"""Guarded reads of global memory: neighbours in one access where all of them exist, else one by
one, with zeros for those outside the matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmgen.base.record import record
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.control import Assign, For, If
from gemmgen.ir.expr import Binary, Element, Expr, Int
from gemmgen.ir.lowered import Move, Node
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add, all_of, choose, less
from gemmgen.lower import addresses, bounds
from gemmgen.lower.bounds import TileCopy
from gemmgen.lower.context import Context
from gemmgen.lower.types import zero

Target = Callable[[Expr], Element]
"""The element that number ``e`` of a run goes to."""


@record
class Run:
    """The neighbours of a matrix that ``copy`` reads at once, the first of them at ``index``;
    ``copied`` is the copy of the tile that they belong to, if any."""

    context: Context
    copy: Copy
    index: Mapping[str, Expr]
    copied: TileCopy | None = None

    @property
    def width(self) -> int:
        return self.copy.width

    @property
    def vector(self) -> Expr:
        """``width`` by its name."""
        return self.context.width(self.copy.dst)

    @property
    def matrix(self) -> Buffer:
        return self.context.buffer(self.copy.src)

    @property
    def row(self) -> str:
        return self.matrix.letters[0]

    @property
    def column(self) -> str:
        """The letter along which they are neighbours."""
        return self.matrix.letters[-1]

    def at(self, e: Expr) -> Element:
        """Number ``e`` of them."""
        column = add(self.index[self.column], e)
        return addresses.in_global(self.context, self.copy.src, {**self.index, self.column: column})

    def inside(self, letter: str, index: Expr | None = None) -> Expr | None:
        at = self.index[letter] if index is None else index
        return bounds.inside(self.context, letter, at, self.copied)


def read(run: Run, target: Target) -> tuple[Node, ...]:
    """The run into ``target``; zeros for what is outside the matrix."""
    first, dtype = target(Int(0)), run.matrix.dtype
    if run.width == 1:
        guard = all_of(run.inside(run.row), run.inside(run.column))
        return (Assign(first, choose(guard, run.at(Int(0)), zero(dtype))),)
    whole = Move(first, run.at(Int(0)), run.width, dtype)
    all_exist = _all_exist(run)
    if all_exist is None:
        return (whole,)
    return (If(all_exist, (whole,), (each(run.context, run.vector, _one(run, target)),)),)


def _all_exist(run: Run) -> Expr | None:
    """The condition under which all of them exist: the last one does."""
    context, column = run.context, run.column
    in_column = None
    if not bounds.is_whole(context, column):
        last = run.index[column]
        if not bounds.multiple(context, column, run.width):
            last = addresses.last_of(last, run.vector)
        in_column = run.inside(column, last)
    return all_of(run.inside(run.row), in_column)


def _one(run: Run, target: Target) -> Node:
    """One element of a run that is not wholly inside: read if it exists, else zero."""
    context, column, nothing = run.context, run.column, zero(run.matrix.dtype)
    e = context.element
    if bounds.runs_are_whole(context, column, run.width):
        return Assign(target(e), nothing)
    in_column = less(Binary("+", run.index[column], e), bounds.stop(context, column))
    exists = all_of(run.inside(run.row), in_column)
    return Assign(target(e), choose(exists, run.at(e), nothing))


def each(context: Context, width: Expr, body: Node) -> For[Node]:
    """``body`` for each of ``width`` neighbours."""
    return For(context.element.name, Int(0), width, Int(1), (body,), unroll=True)
