"""The counts that a puzzle's goals are about, of a kernel at a shape on the default GPU."""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.analyze.explain import Explanation, Traffic
from gemmgen.ir.edit import contraction, tile_of

Count = int | float | str


def _operands(e: Explanation) -> list[Traffic]:
    """Reads of A and B from global memory."""
    problem = e.kernel.program.problem
    names = {problem.a.name, problem.b.name}
    return [t for t in e.traffic if t.buffer in names and not t.write]


def _output(e: Explanation) -> list[Traffic]:
    return [t for t in e.traffic if t.buffer == e.kernel.program.problem.c.name]


def _shared(e: Explanation) -> list[Traffic]:
    return [t for t in e.traffic if t.counts.phases]


def _stages(e: Explanation) -> int:
    """Of the operands' tiles."""
    main = e.kernel.program.main
    problem = e.kernel.program.problem
    tiles = (tile_of(main, operand.name) for operand in (problem.a, problem.b))
    return min(tile.stages if tile else 0 for tile in tiles)


METRICS: dict[str, Callable[[Explanation], Count]] = {
    "global read sectors": lambda e: sum(t.counts.sectors for t in _operands(e)),
    "global read elements": lambda e: sum(t.counts.elements for t in _operands(e)),
    "global read requests": lambda e: sum(t.counts.requests for t in _operands(e)),
    "sectors a write of C": lambda e: max(
        t.counts.sectors_per_request for t in _output(e) if t.write
    ),
    "accesses of C": lambda e: sum(t.counts.elements for t in _output(e)),
    "bank conflicts": lambda e: sum(t.counts.conflicts for t in _shared(e)),
    "shared read elements": lambda e: sum(t.counts.elements for t in _shared(e) if not t.write),
    "shared read requests": lambda e: sum(t.counts.requests for t in _shared(e) if not t.write),
    "shared memory": lambda e: e.resources.shared,
    "threads": lambda e: e.resources.threads,
    "blocks": lambda e: e.waves.launched,
    "stages": _stages,
    "instruction": lambda e: contraction(e.kernel.program.main).atom,
    "useful work": lambda e: e.shape[0] * e.shape[1] * e.shape[2] / e.fmas,
}
"""Sectors are of 32 bytes; shared memory is in bytes a block, threads are a block's, blocks the
launch's.  Bank conflicts are the wavefronts of shared memory beyond one a phase.  Useful work is
the share of the multiply-adds that contribute to C."""
