"""What ping-pong consumers need (``warp_specialize order=pingpong``), each with a refusal."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import Refusal
from gemmgen.base.source import counted
from gemmgen.ir.buffers import AxisSpread
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.target import WARP, WARPGROUP
from gemmgen.passes.base import Stated
from gemmgen.schedule.formatting import format_sizes

CONSUMERS = 2
"""Ping-pong consumers: while one runs its epilogue, the other runs its main loop."""


def check_pingpong(program: Program, stated: Stated, consumers: int | None) -> None:
    """Raise ``Refusal`` if the block computes one tile only, if a tile's threads are not one
    warpgroup, or if ``consumers`` is neither two nor left out."""
    kernel = program.main
    if not kernel.work.persistent:
        raise Refusal(
            "order=pingpong needs several tiles per block, and this block computes one",
            at=stated.span_of("order"),
            hint="add persistent",
        )
    _check_warpgroup(kernel, stated)
    if consumers not in (None, CONSUMERS):
        raise Refusal(
            f"order=pingpong has {CONSUMERS} consumers, not {consumers}",
            at=stated.span_of("consumers"),
            notes=("one runs its main loop while the other runs its epilogue",),
            hint=f"consumers={CONSUMERS}, or leave consumers out",
        )


def _check_warpgroup(kernel: Kernel, stated: Stated) -> None:
    """One warpgroup must hold the accumulators of a tile."""
    threads = kernel.spread.threads
    if threads == WARPGROUP:
        return
    shares = (f"{a.extent} / {a.extent // a.threads}" for a in kernel.spread.axes)
    if threads % WARP == 0 and kernel.spread.lanes_per_piece > 1:
        shares = (f"{a.extent} / {a.extent // a.warps}" for a in kernel.spread.axes)
    found = f"{' x '.join(shares)} = {threads} threads"
    if kernel.spread.lanes_per_piece > 1:
        found = f"{found.partition(' =')[0]} = {counted(threads // WARP, 'warp')}"
    fitting = _tile_of_a_warpgroup(kernel)
    raise Refusal(
        f"with order=pingpong one warpgroup of {WARPGROUP} threads computes a whole tile",
        at=stated.span_of("order"),
        notes=(f"{found} for a tile",),
        hint=f"{fitting}, or order=cooperative" if fitting else "order=cooperative",
    )


def _tile_of_a_warpgroup(kernel: Kernel) -> str | None:
    """The ``tile`` whose longer sides are halved, or shorter ones doubled, until a warpgroup has
    it with as many accumulators a thread; None if there is none."""
    axes, threads = list(kernel.spread.axes), kernel.spread.threads
    by_warp = kernel.spread.by_warp or kernel.spread.collective
    while threads > WARPGROUP:
        able = [a for a in axes if (a.warps if by_warp else a.lanes) % 2 == 0]
        if threads % 2 or not able:
            return None
        axes, threads = _scaled(axes, max(able, key=lambda a: a.extent), by_warp, 0), threads // 2
    while threads < WARPGROUP:
        if WARPGROUP % (2 * threads):
            return None
        axes, threads = _scaled(axes, min(axes, key=lambda a: a.extent), by_warp, 1), threads * 2
    pipeline = pipeline_of(kernel)
    step = ((pipeline.letter, pipeline.step),) if pipeline else ()
    return f"tile {format_sizes((*((a.letter, a.extent) for a in axes), *step))}"


def _scaled(
    axes: list[AxisSpread], chosen: AxisSpread, by_warp: bool, doubled: int
) -> list[AxisSpread]:
    """``axes`` with twice the threads along one, or half of them."""

    def other(count: int) -> int:
        return count * 2 if doubled else count // 2

    fields = {"warps": other(chosen.warps)} if by_warp else {"lanes": other(chosen.lanes)}
    return [replace(a, **fields) if a == chosen else a for a in axes]
