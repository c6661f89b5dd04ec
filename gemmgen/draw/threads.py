"""The owners of C: the warps' parts of the block's tile, and the threads of one warp's part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemmgen.base.source import counted
from gemmgen.draw.grids import Grid, Region, grid_of, within
from gemmgen.draw.marks import COLUMN, LOAD, Cell, Drawing, Label, Mark, Meaning, thread, warp
from gemmgen.draw.owners import NO_THREAD, Owners, owners, readers
from gemmgen.draw.panels import Panel
from gemmgen.draw.scene import Scene
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Ints

_LEFT, _TOP, _BETWEEN = 48.0, 56.0, 64.0
_CHARACTER = 7.0


def draw(scene: Scene) -> Drawing:
    """The tile in warps, and warp 0's elements in threads, or in fragments of tensor cores; of
    accumulators that lanes share, also who adds up what."""
    found = owners(scene)
    panels = list(_panels(scene, found))
    marks: list[Mark] = []
    x, y, width, height = _LEFT, 0.0, 0.0, 0.0
    for panel in panels:
        wide, tall = panel.size
        wide = max(wide, _CHARACTER * len(panel.name))
        if x > _LEFT and x + wide + 16 > COLUMN:
            x, y = _LEFT, height + 16
        marks += panel.marks(x, y + _TOP)
        width = max(width, x + wide + 16)
        x += wide + _BETWEEN
        height = max(height, y + _TOP + tall + 16)
    if scene.main.producers.threads:
        marks += _roles(scene, height + 32)
        height += 32 + _ROLE + 32
        width = max(width, _LEFT + _WARP * (scene.main.threads // WARP) + 16)
    title = f"{scene.kernel.emitted.name}: the threads of a block"
    text = "\n\n".join(panel.table() for panel in panels)
    return Drawing(title, _description(scene, found), width, height, tuple(marks), text)


_WARP, _ROLE = 48.0, 32.0
"""Pixels of a warp in the strip of roles."""


def _roles(scene: Scene, y: float) -> Iterator[Mark]:
    """The warps of the block in their order: consumers, then the producer warpgroup."""
    own, turns = scene.main.spread.threads // WARP, scene.main.producers.pingpong
    yield Label(_LEFT, y - 14, "the warps of the block by role")
    for number in range(scene.main.threads // WARP):
        consumes = number < own * turns
        role = "producer" if not consumes else "consumer"
        if consumes and turns > 1:
            role = f"consumer {number // own + 1}"
        meaning = warp(number % own) if consumes else LOAD
        about = f"warp {number}: {role}"
        yield Cell(_LEFT + number * _WARP, y, _WARP, _ROLE, meaning, str(number), about)
        first = number % own == 0 if consumes else number == own * turns
        if first:
            yield Label(_LEFT + number * _WARP, y + _ROLE + 12, role, size="small", quiet=True)


def _panels(scene: Scene, found: Owners) -> Iterator[Panel]:
    c, letters = scene.problem.c.name, (scene.written.m, scene.written.n)
    if found.warps.max() > 0:

        def of_warp(number: int, where: str) -> Cell:
            about = f"warp {number}: {c}[{where}]"
            return _cell(warp(number), str(number), about, number == 0)

        yield Panel(f"{c}: the warps", letters, grid_of(found.warps), of_warp)
    if found.fragments is not None:

        def of_fragment(number: int, where: str) -> Cell:
            about = f"fragment {number} of warp 0: {c}[{where}]"
            return _cell(thread(number), str(number), about, number == 0)

        name = f"{c}: the fragments of warp 0"
        yield Panel(name, letters, _fragments(found.fragments, found), of_fragment)
        return
    lanes = scene.main.spread.lanes_per_sum

    def of_thread(number: int, where: str) -> Cell:
        who = f"thread {number}" if lanes == 1 else f"threads {number} to {number + lanes - 1}"
        text = str(number) if lanes == 1 else f"{number}-{number + lanes - 1}"
        return _cell(thread(number), text, f"{who}: {c}[{where}]", number == 0)

    yield Panel(f"{c}: the threads of warp 0", letters, _threads(scene, found), of_thread)
    if lanes > 1:
        yield from _along_k(scene)


def _along_k(scene: Scene) -> Iterator[Panel]:
    """The products of the first row of A that each lane sums, up to the first repetition."""
    a, k = scene.problem.a.name, scene.problem.k
    lanes = readers(scene)
    if lanes.min() == NO_THREAD:
        return
    sizes = range(1, lanes.size + 1)
    period = next(p for p in sizes if lanes.size % p == 0 and (lanes[p:] == lanes[:-p]).all())

    def of_lane(number: int, where: str) -> Cell:
        return _cell(thread(number), str(number), f"thread {number}: {a}[{where}]", number == 0)

    name = f"{a}: who reads its first row" + (f", every {period}" if period < lanes.size else "")
    yield Panel(name, (scene.problem.m, k), grid_of(lanes[None, :period]), of_lane)


def _threads(scene: Scene, found: Owners) -> Grid:
    """The first thread of those that share each sum of warp 0."""
    lanes, own = scene.main.spread.lanes_per_sum, found.warps == 0
    return within(np.where(own, found.threads // lanes * lanes, NO_THREAD), own)


def _fragments(numbers: Ints, found: Owners) -> Grid:
    own = found.warps == 0
    return within(np.where(own, numbers, NO_THREAD), own)


def _cell(meaning: Meaning, text: str, about: str, strong: bool) -> Cell:
    return Cell(0, 0, 0, 0, meaning, text, about, strong)


def _description(scene: Scene, found: Owners) -> str:
    spread = scene.main.spread
    m, n = found.threads.shape
    said = [_block(scene, m, n)]
    if found.fragments is not None:
        pieces = _fragments(found.fragments, found)
        count = len({region.number for region in pieces.regions()})
        shape = _shape(_of(pieces, 0))
        said.append(
            f"Warp 0 has {count} fragments of {shape}; its lanes hold each of them together."
        )
        return " ".join(said)
    lanes = spread.lanes_per_sum
    regions = _of(_threads(scene, found), 0)
    elements = sum(region.elements for region in regions)
    who = "Thread 0 has" if lanes == 1 else f"Threads 0 to {lanes - 1} share the accumulators of"
    count = "one element" if elements == 1 else f"{elements} elements"
    pieces = f" in {len(regions)} pieces of" if len(regions) > 1 else ","
    said.append(f"{who} {count}{pieces} {_shape(regions)}, marked by a thick edge.")
    return " ".join(said)


def _block(scene: Scene, m: int, n: int) -> str:
    """The block's warps by role, and its tile."""
    threads, warps = scene.main.threads, counted(scene.main.threads // WARP, "warp")
    tile = f"a tile of {m} x {n} of {scene.problem.c.name}"
    own, producers = scene.main.spread.threads // WARP, scene.main.producers
    if not producers.threads:
        return f"A block of {threads} threads, {warps}, has {tile}."
    loads = producers.threads // WARP
    if producers.pingpong > 1:
        each = f"{producers.pingpong} ping-pong consumers of {own} warps"
        consumers = f"each of {each} has {tile}, alternately"
    else:
        consumers = f"{own} consumer warps have {tile}"
    return f"A block of {threads} threads, {warps}: {consumers}; {loads} are the producer's."


def _of(grid: Grid, number: int) -> list[Region]:
    return [region for region in grid.regions() if region.number == number]


def _shape(regions: list[Region]) -> str:
    return f"{len(regions[0].m)} x {len(regions[0].n)}"
