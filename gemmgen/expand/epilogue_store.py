"""Expansion of the epilogue store: the output's tile passes through shared memory in slices."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.buffers import slice_height, slice_pieces
from gemmgen.ir.control import Block, For, If
from gemmgen.ir.edit import copy_outward
from gemmgen.ir.expanded import OneThread, Stage, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.names import piece, registers
from gemmgen.ir.nodes import Copy, Kernel, Map
from gemmgen.ir.output_slices import StageSlice, StoreBoxes, StoreSlice
from gemmgen.ir.simplify import add, div, mul

NOTE = "the epilogue"
IN, OUT = "stage it in shared memory", "store it: adjacent threads write a row"
BY_ENGINE = "store it with TMA: nothing outside the tensor"
LAST = "the block must not exit before TMA has read shared memory"


def epilogue_store(kernel: Kernel, final: Map, outward: Copy) -> tuple[Timed, ...]:
    """One slice after another: all threads write their rows to it, store it together once it is
    whole, and write it again once it is stored."""
    slice_ = kernel.buffer(final.dst)
    outer, stages = slice_.letters[0], slice_.stages // kernel.producers.pingpong
    pieces = slice_pieces(kernel.spread, outer)
    if kernel.spread.axis(outer).registers == slice_height(kernel.spread, outer):
        # The tile before may be stored yet.
        again = _again(outward, 1) if kernel.work.persistent else ()
        stage = _stage(kernel, Int(0), 1)
        return (Block(NOTE, (), (*again, *_slice(final, outward, Int(0), stage))),)
    row = Var(f"reg_{outer}")
    step = mul(Int(pieces), piece(outer)) if pieces else Int(1)
    number = div(row, step)
    stage, again = _stage(kernel, number, stages), _again(outward, stages)
    if stages > 1 and again and not kernel.work.persistent:
        again = (If[Timed](Binary(">=", number, Int(stages)), again),)
    body = (*again, *_slice(final, outward, row, stage))
    rows = For[Timed](row.name, Int(0), registers(outer), step, body, unroll=True)
    each = f"{2 * pieces} rows" if pieces else "one row"
    return (Block(f"{NOTE}: {each} of each micro-tile at a time", slice_.origins, (rows,)),)


def _stage(kernel: Kernel, row: Expr, stages: int) -> Stage:
    """The slice that a row passes through, of the ``stages`` that those have who share a tile."""
    slot = None if stages == 1 else row % stages
    if kernel.producers.pingpong == 1:
        return slot
    first = mul(names.CONSUMER_NUMBER, Int(stages))
    return first if slot is None else add(first, slot)


def _again(outward: Copy, stages: int) -> tuple[Timed, ...]:
    """Until a slice that was stored may be written again, and all threads know it.

    Threads that store by themselves do so before they write the next slice: with two of them the
    barrier after that one is enough.
    """
    if outward.mode != "tma":
        return (instruction("sync_block"),) if stages == 1 else ()
    return (*_has_left(outward, stages - 1), instruction("sync_block"))


def epilogue_drain(kernel: Kernel) -> tuple[Timed, ...]:
    """What is left to do once the block's last tile is stored."""
    outward = copy_outward(kernel)
    if outward is None or outward.mode != "tma":
        return ()
    by_engine = tuple(o for o in outward.origins if o.startswith("async_copy"))
    return (Block(LAST, by_engine, _has_left(outward)),)


def _slice(final: Map, outward: Copy, row: Expr, stage: Stage = None) -> tuple[Timed, ...]:
    staged = Block[Timed](IN, final.origins, (StageSlice(final, row, stage),), scoped=True)
    if outward.mode == "tma":
        sent = OneThread((StoreBoxes(outward, row, stage), instruction("commit_boxes")))
        stored = Block[Timed](BY_ENGINE, outward.origins, (sent,))
        return (staged, instruction("fence_async"), instruction("sync_block"), stored)
    stored = Block[Timed](OUT, outward.origins, (StoreSlice(outward, row, stage),), scoped=True)
    return (staged, instruction("sync_block"), stored)


def _has_left(outward: Copy, pending: int = 0) -> tuple[Timed, ...]:
    """The thread that asks TMA to store slices waits until all but the last
    ``pending`` are read."""
    if outward.mode != "tma":
        return ()
    return (OneThread((instruction("await_boxes", Int(pending)),)),)
