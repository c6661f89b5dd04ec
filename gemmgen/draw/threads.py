"""Who has what: the warps' parts of the block's tile of C, and one warp's part in threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemmgen.draw.grids import Grid, Region, grid_of, within
from gemmgen.draw.marks import Cell, Drawing, Mark, Meaning, thread, warp
from gemmgen.draw.owners import NOBODY, Owners, owners, readers
from gemmgen.draw.panels import Panel
from gemmgen.draw.scene import Scene
from gemmgen.numerics.operators import Ints

_LEFT, _TOP, _BETWEEN = 48.0, 56.0, 96.0
_CHARACTER = 7.0


def draw(scene: Scene) -> Drawing:
    """The tile in warps, and warp 0's elements in threads, or in fragments of tensor cores; of
    accumulators that lanes share, also who adds up what."""
    found = owners(scene)
    panels = list(_panels(scene, found))
    marks: list[Mark] = []
    x, height = _LEFT, 0.0
    for panel in panels:
        marks += panel.marks(x, _TOP)
        wide, tall = panel.size
        x += max(wide, _CHARACTER * len(panel.name)) + _BETWEEN
        height = max(height, _TOP + tall + 16)
    title = f"{scene.kernel.emitted.name}: the threads of a block"
    text = "\n\n".join(panel.table() for panel in panels)
    size = x - _BETWEEN + 16, height
    return Drawing(title, _description(scene, found), *size, tuple(marks), text)


def _panels(scene: Scene, found: Owners) -> Iterator[Panel]:
    c, letters = scene.problem.c.name, (scene.problem.m, scene.problem.n)
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
    """Which lane adds up which products of the first row of A, until lanes come again."""
    a, k = scene.problem.a.name, scene.problem.k
    lanes = readers(scene)
    if lanes.min() == NOBODY:
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
    return within(np.where(own, found.threads // lanes * lanes, NOBODY), own)


def _fragments(numbers: Ints, found: Owners) -> Grid:
    own = found.warps == 0
    return within(np.where(own, numbers, NOBODY), own)


def _cell(meaning: Meaning, text: str, about: str, strong: bool) -> Cell:
    return Cell(0, 0, 0, 0, meaning, text, about, strong)


def _description(scene: Scene, found: Owners) -> str:
    problem, spread = scene.problem, scene.main.spread
    m, n = found.threads.shape
    threads, warps = scene.kernel.lowered.interface.threads, int(found.warps.max()) + 1
    block = "one warp" if warps == 1 else f"{warps} warps"
    said = [f"A block of {threads} threads, {block}, has a tile of {m} x {n} of {problem.c.name}."]
    if found.fragments is not None:
        pieces = _fragments(found.fragments, found)
        count = len({region.number for region in pieces.regions()})
        shape = _shape(_of(pieces, 0))
        said.append(f"Warp 0 has {count} fragments of {shape}; its lanes hold each together.")
        return " ".join(said)
    lanes = spread.lanes_per_sum
    regions = _of(_threads(scene, found), 0)
    elements = sum(region.elements for region in regions)
    who = "Thread 0 has" if lanes == 1 else f"Threads 0 to {lanes - 1} share the accumulators of"
    count = "one element" if elements == 1 else f"{elements} elements"
    pieces = f" in {len(regions)} pieces of" if len(regions) > 1 else ","
    said.append(f"{who} {count}{pieces} {_shape(regions)}, marked by a thick edge.")
    return " ".join(said)


def _of(grid: Grid, number: int) -> list[Region]:
    return [region for region in grid.regions() if region.number == number]


def _shape(regions: list[Region]) -> str:
    return f"{len(regions[0].m)} x {len(regions[0].n)}"
