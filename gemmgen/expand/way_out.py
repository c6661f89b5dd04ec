"""Expansion of the way out: the output's tile passes through shared memory in slices."""

from __future__ import annotations

from gemmgen.ir.box_stores import AwaitBoxes, CommitBoxes, FenceAsync
from gemmgen.ir.control import Barrier, Block, For
from gemmgen.ir.edit import copy_outward
from gemmgen.ir.expanded import OneThread, StageSlice, StoreBoxes, StoreSlice, Timed
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.names import registers
from gemmgen.ir.nodes import Copy, Kernel, Map

NOTE = "the epilogue"
IN, OUT = "stage it in shared memory", "store it, neighbouring threads along its rows"
BY_ENGINE = "store it by the copy engine, which leaves out what is outside"
LAST = "the last stores have read shared memory when the block ends"


def way_out(kernel: Kernel, final: Map, outward: Copy) -> tuple[Timed, ...]:
    """One row of each thread's micro-tile after another: all threads write theirs to the slice,
    which they store together once it is whole, and write again once it is stored."""
    slice_ = kernel.buffer(final.dst)
    outer = slice_.letters[0]
    free = (*_has_left(outward), Barrier())
    if kernel.spread.axis(outer).registers == 1:
        again = free if kernel.work.persistent else ()  # the tile before may be stored yet
        return (Block(NOTE, (), (*again, *_slice(final, outward, Int(0)))),)
    row = Var(f"reg_{outer}")
    body = (*free, *_slice(final, outward, row))
    rows = For[Timed](row.name, Int(0), registers(outer), Int(1), body, unroll=True)
    return (Block(f"{NOTE}: one row of each micro-tile at a time", slice_.origins, (rows,)),)


def behind_tiles(kernel: Kernel) -> tuple[Timed, ...]:
    """What is left to do once the block's last tile is stored."""
    outward = copy_outward(kernel)
    if outward is None or outward.mode != "tma":
        return ()
    return (Block(LAST, outward.origins, _has_left(outward)),)


def _slice(final: Map, outward: Copy, row: Expr) -> tuple[Timed, ...]:
    staged = Block[Timed](IN, final.origins, (StageSlice(final, row),), scoped=True)
    if outward.mode == "tma":
        sent = OneThread((StoreBoxes(outward, row), CommitBoxes()))
        stored = Block[Timed](BY_ENGINE, outward.origins, (sent,))
        return (staged, FenceAsync(), Barrier(), stored)
    stored = Block[Timed](OUT, outward.origins, (StoreSlice(outward, row),), scoped=True)
    return (staged, Barrier(), stored)


def _has_left(outward: Copy) -> tuple[Timed, ...]:
    """The thread that asks the copy engine to store a slice waits until the slice is read."""
    return (OneThread((AwaitBoxes(Int(0)),)),) if outward.mode == "tma" else ()
