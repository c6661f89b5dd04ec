"""The range of k that a block sums: all of K, or its part of split-K; and its first tile."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.control import Block, Define
from gemmgen.ir.edit import begins_early, pipeline_of
from gemmgen.ir.expanded import Edge, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.nodes import Kernel, Program


@record
class KRange:
    """From ``start`` below ``stop``; a part may be empty, and then starts after its stop.

    If the partial tile is peeled to the front, ``start`` is before k = 0.
    """

    start: Expr
    stop: Expr


def k_range_of(program: Program, kernel: Kernel, letter: str) -> KRange:
    """The range of ``letter`` that a block of ``kernel`` sums over."""
    start = start_of(kernel, letter)
    if kernel.work.parts > 1:
        return KRange(start, names.stop(letter))
    return KRange(start, Var(program.problem.extent(letter)))


def start_of(kernel: Kernel, letter: str) -> Expr:
    """The begin of that range."""
    moves = kernel.work.parts > 1 or begins_early(kernel)
    return names.start(letter) if moves else Int(0)


def first_tile(program: Program, kernel: Kernel, letter: str) -> tuple[Timed, ...]:
    """The start of the tiles if the last one ends at K; empty if the first begins at k = 0."""
    pipeline = pipeline_of(kernel)
    if pipeline is None or not begins_early(kernel):
        return ()
    rest = Var(program.problem.extent(letter)) % names.block(letter)
    early = rest - names.block(letter)
    start = Select(Binary(">", rest, Int(0)), early, Int(0))
    origins = tuple(o for o in pipeline.origins if o.startswith("residue"))
    note = "the partial tile comes first: it starts before k = 0"
    return (Block(note, origins, (Define(names.start(letter).name, start),)),)


def edge_of_first(kernel: Kernel) -> Edge:
    """The bounds checks along k of the tiles before the loop."""
    return "both" if begins_early(kernel) else "stop"


def edge_of_others(kernel: Kernel) -> Edge:
    """The bounds checks along k of the tiles in the loop."""
    return "tile" if begins_early(kernel) else "stop"
