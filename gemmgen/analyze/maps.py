"""Pictures that show which thread touches what: a request of a warp, sector by sector, bank by
bank."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gemmgen.analyze import transactions
from gemmgen.analyze.accesses import Site
from gemmgen.analyze.analyzed_kernel import AnalyzedKernel, Values
from gemmgen.analyze.launch_arguments import Shape, arguments_of
from gemmgen.analyze.recorder import first_block
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Ints

NO_THREAD = -1
STEPS = 4
"""k tiles of the block that are looked at."""


@record
class HeatRow:
    """The threads of a warp (0 to 31, ``NO_THREAD``) that touch the elements of one row."""

    label: str
    lanes: tuple[int, ...]
    again: bool = False
    """Marks a wavefront in addition to those without a conflict."""


@record
class Picture:
    """One request: ``columns`` name what the cells of the ``rows`` hold.

    ``ways`` is the n of its n-way bank conflict; 1 if it has none, or is one of global memory.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    notes: tuple[str, ...]
    ways: int = 1


@record
class _Request:
    """An access of one warp: the first element of each of its 32 threads, -1 for none."""

    site: Site
    warp: int
    first: Ints


Draw = Callable[[AnalyzedKernel, Values, _Request], Picture]


def pictures(kernel: AnalyzedKernel, shape: Shape, what: str) -> tuple[Picture, ...]:
    """``what``: ``A.shared``, ``B.global``, ...; of each direction the costliest request of block 0
    in its first steps."""
    buffer, draw = _buffer(kernel, what)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    found: list[Picture] = []
    for write in (True, False):
        requests = [r for r in _requests(kernel, values, buffer) if r.site.write == write]
        if requests:
            found.append(draw(kernel, values, max(requests, key=_cost)))
    if not found:
        raise UsageError(f"--map {what}: the kernel's first block does not touch it")
    return tuple(found)


def _buffer(kernel: AnalyzedKernel, what: str) -> tuple[str, Draw]:
    tensors = {p.name for p in kernel.lowered.interface.tensors}
    arrays = {array.name for array in kernel.lowered.shared}
    tiles = {b.tensor: b.name for b in kernel.program.main.buffers if b.name in arrays}
    known = [f"{name}.global" for name in sorted(tensors)]
    known += [f"{name}.shared" for name in sorted(tensors) if name in tiles]
    tensor, _, hop = what.partition(".")
    if what not in known:
        raise UsageError(f"--map {what}: this kernel has {', '.join(known)}")
    return (tiles[tensor], _banks) if hop == "shared" else (tensor, _sectors)


def _requests(kernel: AnalyzedKernel, values: Values, buffer: str) -> list[_Request]:
    """The distinct requests of block 0, in program order."""
    problem, pipeline = kernel.program.problem, pipeline_of(kernel.program.main)
    name = kernel.lowered.interface.extent(problem.k)
    short = STEPS * (pipeline.step if pipeline else 1)
    few = dict(values) | {name: min(int(values[name]), short)}
    found: dict[tuple[Site, bytes], _Request] = {}
    for site, by_warp in first_block(kernel.lowered, few):
        if site.buffer == buffer:
            for warp, first in enumerate(by_warp):
                if (first >= 0).any():
                    found.setdefault((site, first.tobytes()), _Request(site, warp, first))
    return list(found.values())


def _cost(request: _Request) -> float:
    """Sectors; or wavefronts per phase, so that a conflict outweighs a wide access."""
    site, first = request.site, request.first[None]
    if site.space == "global":
        return float(transactions.units(first, site.width, transactions.SECTOR, site.size)[0])
    found = transactions.shared(first, site.width, site.size)
    return float(found.wavefronts[0] / found.phases[0])


def _touched(first: Ints, width: int) -> Iterator[tuple[int, int]]:
    """Element and thread, of all threads of a request."""
    for lane, start in enumerate(first.tolist()):
        if start >= 0:
            for e in range(width):
                yield start + e, lane


def _title(request: _Request) -> str:
    site = request.site
    verb = "writes" if site.write else "reads"
    wide = f", {site.width} elements a thread" if site.width > 1 else ""
    note = f" ({site.note})" if site.note else ""
    return f"warp {request.warp} of block 0 {verb} {site.buffer}{wide}{note}"


def _sectors(kernel: AnalyzedKernel, values: Values, request: _Request) -> Picture:
    """Global memory: a row for each sector; of threads that share an element the first."""
    site = request.site
    indices = next(p.indices for p in kernel.lowered.interface.params if p.name == site.buffer)
    pitch = dict(kernel.lowered.interface.pitch).get(site.buffer)
    size = transactions.SECTOR // site.size
    rows: dict[int, list[int]] = {}
    for element, lane in _touched(request.first, site.width):
        cells = rows.setdefault(element // size, [NO_THREAD] * size)
        if cells[element % size] == NO_THREAD:
            cells[element % size] = lane
    batches = dict(kernel.lowered.interface.batches)

    def label(sector: int) -> str:
        """The first matrix is that of block 0."""
        at = sector * size
        matrix = iter((at,) if pitch is None else divmod(at, int(values[pitch])))
        position = ("0" if x in batches else str(next(matrix)) for x in indices)
        return f"{site.buffer}[{', '.join(position)}]"

    drawn = tuple(HeatRow(label(sector), tuple(rows[sector])) for sector in sorted(rows))
    return Picture(
        _title(request),
        tuple(f"+{e}" for e in range(size)),
        drawn,
        (f"{len(drawn)} sectors of 32 bytes, one a row; the numbers are threads of the warp",),
    )


def _banks(kernel: AnalyzedKernel, values: Values, request: _Request) -> Picture:
    """Shared memory: phase by phase, a row for each wavefront."""
    site, banks = request.site, transactions.BANKS
    parts = transactions.words_of(site.width, site.size)
    size = WARP // parts
    drawn: list[HeatRow] = []
    for phase in range(parts):
        first = np.full(WARP, NO_THREAD)
        own = slice(phase * size, (phase + 1) * size)
        first[own] = request.first[own]
        columns: list[list[int]] = [[] for _ in range(banks)]
        seen: set[int] = set()
        words = np.where(first >= 0, first * site.size // transactions.WORD, NO_THREAD)
        for word, lane in _touched(words, parts):
            if word not in seen:
                seen.add(word)
                columns[word % banks].append(lane)
        for front in range(max(map(len, columns))):
            cells = tuple(c[front] if front < len(c) else NO_THREAD for c in columns)
            label = f"phase {phase}" if front == 0 else f"  again ({front + 1})"
            drawn.append(HeatRow(label, cells, again=front > 0))
    cost = transactions.shared(request.first[None], site.width, site.size)
    ways, fronts, phases = (int(x[0]) for x in (cost.ways, cost.wavefronts, cost.phases))
    verdict = "no bank conflict" if ways == 1 else f"a {ways}-way bank conflict"
    return Picture(
        _title(request),
        tuple(str(bank) for bank in range(banks)),
        tuple(drawn),
        (
            f"columns are banks, rows wavefronts: {fronts} in {phases} phases, {verdict}; "
            "of threads that share a word the first is shown",
        ),
        ways,
    )


def drawn(picture: Picture) -> str:
    """The picture in characters."""
    wide = max(len(row.label) for row in picture.rows)
    lines = [picture.title, " " * wide + "".join(f"{c:>4}"[-3:] for c in picture.columns)]
    for row in picture.rows:
        cells = "".join("  ." if lane == NO_THREAD else f"{lane:>3}" for lane in row.lanes)
        lines.append(f"{row.label:<{wide}}{cells}")
    return "\n".join((*lines, *picture.notes)) + "\n"
