"""The thread that has each element of its block's tile of C, derived from the lowered kernel.

A thread that stores an element has its sum, or writes it to where TMA stores it from.
Tensor cores leave open which lane has which element
of a fragment: what a warp stores is its own, and threads that pass such accumulators on to C are
followed back to that warp.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gemmgen.analyze.accesses import Rows, Site
from gemmgen.base.record import record
from gemmgen.draw.recorded import Values, dense, positions, record_block
from gemmgen.draw.scene import Scene
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer, slice_pieces
from gemmgen.ir.edit import contraction, tile_of
from gemmgen.ir.lane_matrices import MATRIX, ROWS
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Ints

NO_THREAD = -1


@record
class Owners:
    """``threads``: the one that has each element (m, n) of the tile; of a warp's fragments its
    first.  ``fragments``: their numbers within their warp, from 0 in the order of their stores;
    None where threads have their own elements."""

    threads: Ints
    fragments: Ints | None

    @property
    def warps(self) -> Ints:
        return self.threads // WARP


def owners(scene: Scene) -> Owners:
    """The owners of the first tile of C."""
    values, followed = dense(scene, scene.least()), _Followed(scene)
    record_block(scene, values, followed.see, followed.see_boxes)
    return followed.owners(values)


def readers(scene: Scene) -> Ints:
    """If lanes share accumulators: the thread that reads element k of the first row of A in a step
    along k; ``NO_THREAD`` if the row comes from shared memory."""
    problem, values = scene.problem, dense(scene, scene.least())
    found, position = np.full(scene.step or 1, NO_THREAD), positions(scene, problem.a, values)

    def see(site: Site, first: Ints) -> None:
        if site.buffer == problem.a.name:
            for thread in np.flatnonzero(first >= 0).tolist():
                for e in range(site.width):
                    at = position(int(first[thread]) + e)
                    if at[problem.m] == 0 and not scene.staged(problem.a):
                        found[at[problem.k] % found.size] = thread

    record_block(scene, values, see)
    return found


class _Followed:
    """The accesses of a block, and where the accumulators that it stores in C come from."""

    def __init__(self, scene: Scene):
        self._scene = scene
        self._sources: dict[str, dict[int, tuple[int, int]]] = {}
        self._fragments: dict[tuple[str, int], int] = {}
        self._read: dict[int, list[tuple[int, int]]] = {}
        self._stored: dict[int, tuple[int, int]] = {}
        self._staged: dict[int, tuple[int, int]] = {}
        self._leaving: list[tuple[int, int]] = []

    def see(self, site: Site, first: Ints) -> None:
        """``first``: each thread's first element, -1 for none."""
        final = site.buffer == self._scene.problem.c.name
        if site.fragment and site.write and site.buffer == self._slice and self._lanes_known:
            self._store_matrices(site, first)
        elif site.fragment and site.write:
            self._store_fragment(site, first, final)
        elif site.write and final:
            self._store(site, first)
        elif site.write and site.buffer == self._slice:
            for thread in np.flatnonzero(first >= 0).tolist():
                for e in range(site.width):
                    self._staged[int(first[thread]) + e] = thread, 0
        elif not site.write and site.buffer in self._sources:
            known = self._sources[site.buffer]
            for thread in np.flatnonzero(first >= 0).tolist():
                start = int(first[thread])
                words = (known[start + e] for e in range(site.width))
                self._read.setdefault(thread, []).extend(words)

    def see_boxes(self, site: Site, rows: Rows) -> None:
        """TMA stores whole boxes of the slice to C, each in the order of its rows, unswizzled."""
        elements = [
            first + e
            for first, length in zip(rows.first.tolist(), rows.length.tolist(), strict=True)
            for e in range(length)
        ]
        if site.buffer == self._slice:
            self._leaving = [self._staged[self._place(element)] for element in elements]
        elif site.write and site.buffer == self._scene.problem.c.name:
            self._stored |= dict(zip(elements, self._leaving, strict=True))

    @property
    def _slice(self) -> str:
        return self._staging.name if self._staging else ""

    @cached_property
    def _staging(self) -> Buffer | None:
        return tile_of(self._scene.main, self._scene.problem.c.name)

    def _place(self, element: int) -> int:
        """Where an element of the slice lies that would be number ``element`` without a swizzle."""
        assert self._staging is not None
        row, column = divmod(element, self._staging.row)
        if self._staging.swizzle is None:
            return element
        return row * self._staging.row + self._staging.swizzle.column(row, column)

    @property
    def _lanes_known(self) -> bool:
        """Whether the owner of each accumulator of a fragment is known."""
        return ATOMS[contraction(self._scene.main).atom].accumulators is not None

    def _store_matrices(self, site: Site, first: Ints) -> None:
        """A lane addresses a row of a matrix; the row's elements belong to the lanes that hold
        them.  Where a lane's neighbours lie across the slice's rows, matrices are transposed."""
        assert self._staging is not None
        transposed = slice_pieces(self._scene.main.spread, self._staging.letters[0]) > 0
        for warp, rows in enumerate(first.reshape(-1, WARP).tolist()):
            for named, start in enumerate(rows):
                for column in range(site.width if start >= 0 else 0):
                    at = (column, named % ROWS) if transposed else (named % ROWS, column)
                    lane, _ = MATRIX.owner(*at)
                    self._staged[start + column] = warp * WARP + lane, 0

    def _store(self, site: Site, first: Ints) -> None:
        """Threads store their own elements, or those that they read last."""
        for thread in np.flatnonzero(first >= 0).tolist():
            sources = self._read.pop(thread, [])[-site.width :] or [(thread, 0)] * site.width
            for e, source in enumerate(sources):
                self._stored[int(first[thread]) + e] = source

    def _store_fragment(self, site: Site, first: Ints, final: bool) -> None:
        """One of the accesses by which a warp stores a fragment."""
        atom = ATOMS[contraction(self._scene.main).atom]
        accesses = atom.m * atom.n // (WARP * site.width)
        target = self._stored if final else self._sources.setdefault(site.buffer, {})
        for warp, starts in enumerate(first.reshape(-1, WARP).tolist()):
            if max(starts) >= 0:
                count = self._fragments.get((site.buffer, warp), 0)
                self._fragments[site.buffer, warp] = count + 1
                for start in starts:
                    for e in range(site.width):
                        target[start + e] = (warp * WARP, count // accesses)

    def owners(self, values: Values) -> Owners:
        problem, work, main = self._scene.written, self._scene.main.work, self._scene.main
        tile = work.size(problem.m), work.size(problem.n)
        threads, fragments = np.full(tile, NO_THREAD), np.full(tile, NO_THREAD)
        position = positions(self._scene, problem.c, values)
        for address, (thread, fragment) in self._stored.items():
            at = position(address)
            where = at.get(problem.m, 0), at.get(problem.n, 0)
            threads[where], fragments[where] = thread, fragment
        return Owners(threads, fragments if main.spread.holding == "opaque" else None)
