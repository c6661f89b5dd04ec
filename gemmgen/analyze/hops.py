"""The elements that move between levels of memory in a launch, and the reuse of each."""

from __future__ import annotations

from math import prod

from gemmgen.analyze.explain import Explanation, Traffic
from gemmgen.analyze.transactions import SECTOR
from gemmgen.base.record import record
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import tile_of
from gemmgen.ir.problem import Tensor

GLOBAL, SHARED, REGISTERS, ARITHMETIC = "global", "shared", "registers", "multiply-adds"
"""The levels, from far to near."""


@record
class Hop:
    """``elements`` of ``tensor`` move from level ``source`` to ``target``.

    ``bytes`` are those of whole sectors where global memory is accessed.  Elements arrived at
    ``source`` once for ``reuse`` times that they leave it.
    """

    tensor: str
    source: str
    target: str
    elements: int
    bytes: int
    reuse: float


def hops_of(e: Explanation) -> tuple[Hop, ...]:
    """Of A and B from global memory to the multiply-adds, and of C back, and to its reader."""
    problem = e.kernel.program.problem.written
    found = [hop for operand in (problem.a, problem.b) for hop in _inwards(e, operand)]
    for write in (True, False):
        traffic = _traffic(e, problem.c.name, write=write)
        if traffic:
            ends = (REGISTERS, GLOBAL) if write else (GLOBAL, REGISTERS)
            whole = _matrix(e, problem.c)
            moved = traffic.counts.elements
            found.append(Hop(problem.c.name, *ends, moved, _sectors(traffic), moved / whole))
    return tuple(found)


def _inwards(e: Explanation, operand: Tensor) -> list[Hop]:
    """The hops of an operand; without a shared tile threads read it from global memory directly."""
    size, name = BYTES[operand.dtype], operand.name
    read = _traffic(e, name, write=False)
    tile = tile_of(e.kernel.program.main, name)
    staged = _traffic(e, tile.name, write=False) if tile else None
    if read is None:
        return []
    far = read.counts.elements
    first = SHARED if staged else REGISTERS
    found = [Hop(name, GLOBAL, first, far, _sectors(read), far / _matrix(e, operand))]
    near = far
    if staged is not None:
        near = staged.counts.elements
        found.append(Hop(name, SHARED, REGISTERS, near, near * size, near / far))
    found.append(Hop(name, REGISTERS, ARITHMETIC, e.fmas, e.fmas * size, e.fmas / near))
    return found


def _traffic(e: Explanation, buffer: str, *, write: bool) -> Traffic | None:
    found = (t for t in e.traffic if t.buffer == buffer and t.write == write)
    return next(found, None)


def _sectors(traffic: Traffic) -> int:
    return traffic.counts.sectors * SECTOR


def _matrix(e: Explanation, tensor: Tensor) -> int:
    """Elements of a tensor, all its matrices together."""
    sizes = dict(zip(e.kernel.program.problem.letters, e.shape, strict=True))
    return prod(sizes[letter] for letter in tensor.letters)
