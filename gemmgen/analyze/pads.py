"""The smallest pad of each shared tile that leaves the fewest bank conflicts, and the swizzle.

Only full tiles are looked at: the accesses of one block in its first steps, with the rows of the
tile lengthened by each pad, or permuted by each swizzle.  A tile that TMA
copies has no pad, and TMA's swizzle alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import cast

import numpy as np

from gemmgen.analyze import transactions
from gemmgen.analyze.recorder import first_block
from gemmgen.base.record import record
from gemmgen.ir.boxes import atom_width_of, tma_swizzle
from gemmgen.ir.buffers import Buffer, Swizzle
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import copies, pipeline_of
from gemmgen.ir.lowered import LoweredKernel, SharedArray
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.numerics.operators import Ints
from gemmgen.passes.banks import candidates, fewest

STEPS = 2
"""Times that the block goes through all stages."""


@record
class Conflicts:
    """Conflicts with this pad or swizzle: wavefronts per phase (1.0: no conflicts), and the worst
    n-way conflict."""

    pad: int
    swizzle: Swizzle | None
    wavefronts: int
    phases: int
    ways: int

    @property
    def layout(self) -> str:
        """The statement: ``pad by=4``."""
        s = self.swizzle
        return f"swizzle by={s.by} every={s.every} chunk={s.chunk}" if s else f"pad by={self.pad}"

    @property
    def excess(self) -> int:
        return self.wavefronts - self.phases


@record
class PadChoice:
    """A tile's conflicts as it is, and with the smallest of the best pads and swizzles.

    ``width`` is that of its widest access: rows stay multiples of it.  ``swizzled`` is None if a
    row is too short or too odd for any swizzle, or if tensor cores read it.
    """

    buffer: str
    width: int
    now: Conflicts
    best: Conflicts
    swizzled: Conflicts | None


def pad_choices(
    program: Program, kernel: LoweredKernel, values: Mapping[str, int | float]
) -> tuple[PadChoice, ...]:
    """The choice for each shared tile of an operand."""
    pipeline = pipeline_of(program.main)
    if pipeline is None or not kernel.shared:
        return ()
    stages = max(program.main.buffer(s.name).stages for s in kernel.shared)
    name = kernel.interface.extent(pipeline.letter)
    short = min(int(values[name]), pipeline.step * stages * STEPS)
    staged: dict[str, list[tuple[int, Ints]]] = {copy.dst: [] for copy in pipeline.produce}
    for site, first in first_block(kernel, dict(values) | {name: short}):
        if site.buffer in staged:
            staged[site.buffer].append((site.width, first))
    return tuple(
        _choice(array, program.main, staged[array.name])
        for array in kernel.shared
        if staged.get(array.name)
    )


def _choice(array: SharedArray, kernel: Kernel, seen: list[tuple[int, Ints]]) -> PadChoice:
    """``seen``: the width of each access of ``array``, and its first elements."""
    width, size = max(width for width, _ in seen), BYTES[array.dtype]
    tile = kernel.buffer(array.name)
    rows, row = array.sizes[-2:]
    length = tile.row - tile.pad
    groups = {w: _counted([first for x, first in seen if x == w]) for w in {w for w, _ in seen}}

    def conflicts(by: int, swizzle: Swizzle | None, atom_width: int = length) -> Conflicts:
        wavefronts = phases = ways = 0
        for w, (first, often) in groups.items():
            at, column = first // row, _permuted(tile.swizzle, first // row % rows, first % row)
            before = column // atom_width * rows * atom_width
            own = _permuted(swizzle, at % rows, column % atom_width)
            first_at = before + at * (atom_width + by) + own
            cost = transactions.shared(np.where(first < 0, -1, first_at), w, size)
            wavefronts += int(cost.wavefronts @ often)
            phases += int(cost.phases @ often)
            ways = max(ways, int(cost.ways.max(initial=0)))
        return Conflicts(by, swizzle, wavefronts, phases, ways)

    # Pads repeat after as many elements as the banks hold.
    most = transactions.BANKS * transactions.WORD // size
    boxed = any(c.dst == array.name and c.mode == "tma" for c in copies(kernel))
    pads = range(1 if boxed else most + 1)
    padded = (conflicts(by, None) for by in pads if (length + by) % width == 0)
    best = fewest(padded, attrgetter("excess"))
    now = conflicts(tile.pad, tile.swizzle)
    opaque = kernel.spread.holding == "opaque"
    swizzles: list[tuple[Swizzle, int]] = []
    if now.excess and not opaque:
        swizzles = _tma_swizzles(tile) if boxed else [(s, length) for s in candidates(kernel, tile)]
    permuted = (conflicts(0, *s) for s in swizzles)
    swizzled = fewest(permuted, attrgetter("excess")) if swizzles else None
    return PadChoice(array.name, width, now, best, swizzled)


def _tma_swizzles(tile: Buffer) -> list[tuple[Swizzle, int]]:
    """The permutation of TMA and the rows that it has, if it has one for the tile."""
    atom_width = atom_width_of(tile.row, tile.dtype)
    pattern = tma_swizzle(atom_width, tile.dtype) if atom_width else None
    return [(pattern, atom_width)] if atom_width and pattern else []


def _permuted(swizzle: Swizzle | None, row: Ints, column: Ints) -> Ints:
    if swizzle is None:
        return column
    return cast(Ints, column ^ (row // swizzle.every % swizzle.by * swizzle.chunk))


def _counted(rows: list[Ints]) -> tuple[Ints, Ints]:
    """Different warps' accesses, and how often each is made."""
    different, often = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    return different, often
