"""Extents, whether tiles are full, and guards if they are not."""

from __future__ import annotations

from gemmgen.ir import clusters, names
from gemmgen.ir.assumptions import divides, equal_to
from gemmgen.ir.control import If
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.expanded import CopyTileAsync, Load, Transfer
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.simplify import add, all_of, less
from gemmgen.ir.thread_code import Node
from gemmgen.lower.context import Context

TileCopy = Load | Transfer | CopyTileAsync
"""What copies a tile from global memory, and says how that tile may be ragged along k."""


def extent(context: Context, letter: str) -> Var:
    """The problem's extent along ``letter``, under the name the kernel knows it by."""
    return Var(equal_to(context.program, context.problem.extent(letter)))


def stop(context: Context, letter: str) -> Var:
    """The end of the block's range of ``letter``: its part's, or the extent."""
    if context.is_split and letter == context.problem.k:
        return names.stop(letter)
    return extent(context, letter)


def tile(context: Context, letter: str) -> int:
    """The tile's extent along ``letter``."""
    sizes = dict(context.kernel.work.tile)
    if letter in sizes:
        return sizes[letter]
    pipeline = pipeline_of(context.kernel)
    return pipeline.step if pipeline else 1


def is_whole(context: Context, letter: str) -> bool:
    """Whether every tile is full along ``letter``, so that no guard is needed."""
    if letter in context.letters and context.leaves_early:
        return True
    return multiple(context, letter, reach(context, letter))


def reach(context: Context, letter: str) -> int:
    """The extent along ``letter`` of all tiles of a cluster, or of a block that runs alone: a tile
    may begin that far after the first one that is inside."""
    return tile(context, letter) * clusters.along(context.kernel.work, letter)


def multiple(context: Context, letter: str, width: int) -> bool:
    """Whether the extent along ``letter`` is assumed to be a multiple of ``width``."""
    return divides(context.program, context.problem.extent(letter), width)


def runs_are_whole(context: Context, letter: str, width: int) -> bool:
    """Whether each aligned run of ``width`` neighbours is in range as a whole or not at all."""
    return is_whole(context, letter) or multiple(context, letter, width)


def inside(
    context: Context, letter: str, index: Expr, copied: TileCopy | None = None
) -> Expr | None:
    """The condition under which ``index`` is in range; None where every tile is full.

    Along k the tile that is ``copied`` says which bounds to check.
    """
    if is_whole(context, letter):
        return None
    end = stop(context, letter)
    if letter != context.problem.k or copied is None or copied.edge == "stop":
        return less(index, end)
    if copied.edge == "tile":
        return less(copied.origin, end)
    return all_of(Binary(">=", index, Int(0)), less(index, end))


def whole_tile(
    context: Context, letters: tuple[str, ...], origin: Expr, copied: TileCopy | None = None
) -> Expr | None:
    """The condition, the same for all threads, under which the tile at ``origin`` along k is in
    range along these letters; None if it always is.

    Wide guarded loads branch piece by piece; this spares them to all tiles but the ragged ones.
    """
    conditions: list[Expr | None] = []
    for letter in letters:
        along_k = letter == context.problem.k
        first = origin if along_k else names.tile_origin(letter)
        if along_k and copied is not None and copied.edge == "tile":
            conditions.append(inside(context, letter, first, copied))
        elif not is_whole(context, letter):
            end = add(first, names.block(letter))
            conditions.append(Binary("<=", end, stop(context, letter)))
    return all_of(*conditions)


def guarded(condition: Expr | None, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` under a condition, if there is one."""
    return body if condition is None else (If(condition, body),)
