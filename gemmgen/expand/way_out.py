"""Expansion of the way out: the output's tile passes through shared memory in slices."""

from __future__ import annotations

from gemmgen.ir.control import Barrier, Block, For
from gemmgen.ir.expanded import StageSlice, StoreSlice, Timed
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.names import registers
from gemmgen.ir.nodes import Copy, Kernel, Map

NOTE = "the epilogue"
IN, OUT = "stage it in shared memory", "store it, neighbouring threads along its rows"


def way_out(kernel: Kernel, final: Map, outward: Copy) -> tuple[Timed, ...]:
    """One row of each thread's micro-tile after another: all threads write theirs to the slice,
    which they store together once it is whole, and write again once it is stored."""
    slice_ = kernel.buffer(final.dst)
    outer = slice_.letters[0]
    if kernel.spread.axis(outer).registers == 1:
        again = (Barrier(),) if kernel.work.persistent else ()  # the tile before may be stored yet
        return (Block(NOTE, (), (*again, *_slice(final, outward, Int(0)))),)
    row = Var(f"reg_{outer}")
    body = (Barrier(), *_slice(final, outward, row))
    rows = For[Timed](row.name, Int(0), registers(outer), Int(1), body, unroll=True)
    return (Block(f"{NOTE}: one row of each micro-tile at a time", slice_.origins, (rows,)),)


def _slice(final: Map, outward: Copy, row: Expr) -> tuple[Timed, ...]:
    return (
        Block[Timed](IN, final.origins, (StageSlice(final, row),), scoped=True),
        Barrier(),
        Block[Timed](OUT, outward.origins, (StoreSlice(outward, row),), scoped=True),
    )
