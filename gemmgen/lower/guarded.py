"""Guarded reads of global memory: neighbours in one access if all of them exist, else one by
one, with zeros for those outside the matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.control import Assign, For, If
from gemmgen.ir.edit import copies
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add, all_of, choose, less
from gemmgen.ir.thread_code import Function, Invoke, Move, Node, Parameter
from gemmgen.ir.traversal import names_in, rebuilt
from gemmgen.lower import addresses, bounds
from gemmgen.lower.bounds import TileCopy
from gemmgen.lower.context import Context
from gemmgen.lower.types import zero

T = TypeVar("T")

TARGET = "target"
ANY_MATRIX = ("X", "ldx", "rows", "cols", "i", "j")
"""Any operand, its sizes, and the coordinates of an element, in a function that reads all."""
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
    all_exist = _all_exist(run)
    if all_exist is None:
        return (Move(first, run.at(Int(0)), run.width, dtype),)
    return _guarded(run, all_exist, target)


def _guarded(run: Run, all_exist: Expr, target: Target) -> tuple[Node, ...]:
    whole = Move(target(Int(0)), run.at(Int(0)), run.width, run.matrix.dtype)
    return (If(all_exist, (whole,), (each(run.context, run.vector, _one(run, target)),)),)


def is_function(run: Run) -> bool:
    """Whether ``call`` can read the run: it is guarded, by bounds that are the same everywhere."""
    same = run.copied is None or run.copied.edge == "stop"
    return run.width > 1 and same and _all_exist(run) is not None


def call(run: Run, target: Target) -> Invoke:
    """The run into ``target`` by the function that reads any guarded run of its matrix: one for all
    operands if it reads theirs, too."""
    own, reading = _function(run, _names(run)), _reading(run.context, run.copy)
    of_any = {_function(other, ANY_MATRIX) for other in reading if len(reading) > 1}
    shared = len(of_any) == 1
    copied = [other.copy for other in reading] if shared else [run.copy]
    function = replace(
        of_any.pop() if shared else own,
        name=f"load{run.width}" if shared else names.load(run.matrix.name),
        note=f"loads a vector of {' or '.join(c.src for c in copied)}; zeros outside the matrix",
        origins=tuple(dict.fromkeys(origin for copy in copied for origin in copy.origins)),
    )
    _, matrix, *sizes = (Var(parameter.name) for parameter in own.parameters[:-2])
    coordinates = (run.index[letter] for letter in (run.row, run.column))
    return Invoke(function, (target(Int(0)), matrix, *sizes, *coordinates))


def _reading(context: Context, copy: Copy) -> list[Run]:
    """A run of each matrix that is read as ``copy`` reads its own."""
    alike = (c for c in copies(context.kernel) if (c.width, c.mode) == (copy.width, copy.mode))
    matrices = ((c, context.buffer(c.src)) for c in alike)
    runs = (
        Run(context, c, {letter: Var(letter) for letter in matrix.letters})
        for c, matrix in matrices
        if matrix.space is Space.GLOBAL
    )
    return [run for run in runs if is_function(run)]


def _names(run: Run) -> tuple[str, ...]:
    """What ``ANY_MATRIX`` names, as the kernel calls it."""
    context, letters = run.context, (run.row, run.column)
    sizes = (addresses.pitch(context, run.copy.src), *(bounds.stop(context, x) for x in letters))
    return (run.copy.src, *(size.name for size in sizes), *letters)


def _function(run: Run, names_there: tuple[str, ...]) -> Function:
    """The function that reads any guarded run of the matrix, yet without its name and comment."""
    letters, dtype = (run.row, run.column), run.matrix.dtype
    within = replace(run, index={letter: Var(letter) for letter in letters}, copied=None)
    all_exist = _all_exist(within)
    assert all_exist is not None
    body = _guarded(within, all_exist, lambda e: Element(TARGET, (e,)))
    here = _names(run)
    called = dict(zip(here, names_there, strict=True))
    used = names_in(body)
    sizes = (called[name] for name in dict.fromkeys(here[1:-2]) if name in used)
    matrix, *_, row, column = names_there
    parameters = (
        Parameter(TARGET, dtype, written=True),
        Parameter(matrix, dtype),
        *map(Parameter, (*sizes, row, column)),
    )
    return Function("", "", (), parameters, body if here == names_there else _renamed(body, called))


def _renamed(tree: T, called: Mapping[str, str]) -> T:
    match tree:
        case Var(name):
            return cast("T", Var(called.get(name, name)))
        case Element(buffer, indices):
            return cast("T", Element(called.get(buffer, buffer), _renamed(indices, called)))
        case _:
            return rebuilt(tree, lambda part: _renamed(part, called))


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
    in_column = less(run.index[column] + e, bounds.stop(context, column))
    exists = all_of(run.inside(run.row), in_column)
    return Assign(target(e), choose(exists, run.at(e), nothing))


def each(context: Context, width: Expr, body: Node) -> For[Node]:
    """``body`` for each of ``width`` neighbours."""
    return For(context.element.name, Int(0), width, Int(1), (body,))
