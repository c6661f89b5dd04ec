"""Warps that own sub-tiles of the block's tile: their sizes, and which of them a thread is in."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.control import Define
from gemmgen.ir.expr import Expr, Var
from gemmgen.ir.lowered import Constant
from gemmgen.ir.simplify import div, mod
from gemmgen.ir.target import WARP
from gemmgen.lower.context import LANE, TID, Context

OWN_WARP = Var("warp")


def sizes(context: Context) -> Iterator[Constant]:
    """A warp's extents."""
    for letter in context.letters:
        axis = context.axis(letter)
        size = axis.extent // axis.warps
        yield Constant(names.warp(letter).name, size, None, "warp tile")


def apart(context: Context, letter: str) -> Expr:
    """From a warp's first element to that of the next one: of as many rounds a share."""
    own = names.warp(letter)
    return own if context.axis(letter).rounds == 1 else div(own, names.fragments(letter))


def numbers(context: Context, lanes: Expr) -> tuple[Define, Define, Define]:
    """The thread's number among those that share a tile, its warp's among theirs, and its own among
    the ``lanes`` of its warp."""
    return (
        Define(TID.name, context.thread),
        Define(OWN_WARP.name, div(TID, lanes)),
        Define(LANE.name, mod(TID, lanes)),
    )


def coordinates(context: Context, warp: Expr = OWN_WARP) -> dict[str, Expr]:
    """Which of the warps along each letter this one is; warps go over the block's tile along one
    letter first."""
    x = context.kernel.spread.warps_x
    across = div(names.block(x), names.warp(x))
    return {letter: (mod if letter == x else div)(warp, across) for letter in context.letters}


def threads(context: Context) -> Expr:
    """The number of threads, as the text computes it."""
    m, n = context.letters
    along = (div(names.block(letter), names.warp(letter)) for letter in (m, n))
    return next(along) * next(along) * WARP


def in_one_dimension(context: Context) -> tuple[int, int]:
    """The block's threads along x and y, where warps are numbered."""
    return context.kernel.threads, 1
