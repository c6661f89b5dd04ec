"""Which terms of the contraction a block sums: all of them, or its part's; and where its tiles
begin."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.control import Block, Define
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.expanded import Edge, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.nodes import Kernel, Program


@record
class Terms:
    """From ``start`` below ``stop``; a part may be empty, and then starts behind its stop.

    Where the first tile is the ragged one, ``start`` is before the first term.
    """

    start: Expr
    stop: Expr


def terms_of(program: Program, kernel: Kernel, letter: str) -> Terms:
    """The range of ``letter`` that a block of ``kernel`` sums over."""
    if kernel.work.parts > 1:
        return Terms(names.start(letter), names.stop(letter))
    start: Expr = names.start(letter) if begins_early(kernel) else Int(0)
    return Terms(start, Var(program.problem.extent(letter)))


def begins_early(kernel: Kernel) -> bool:
    """May the first tile begin before the first term?"""
    pipeline = pipeline_of(kernel)
    return pipeline is not None and pipeline.residue == "first"


def first_tile(program: Program, kernel: Kernel, letter: str) -> tuple[Timed, ...]:
    """Where the tiles begin that end with the last term; nothing where they begin with the
    first."""
    pipeline = pipeline_of(kernel)
    if pipeline is None or not begins_early(kernel):
        return ()
    rest = Binary("%", Var(program.problem.extent(letter)), names.block(letter))
    early = Binary("-", rest, names.block(letter))
    start = Select(Binary(">", rest, Int(0)), early, Int(0))
    origins = tuple(o for o in pipeline.origins if o.startswith("residue"))
    note = "the partial tile is peeled to the front: it begins before k = 0"
    return (Block(note, origins, (Define(names.start(letter).name, start),)),)


def edge_of_first(kernel: Kernel) -> Edge:
    """What the tiles before the loop may lack."""
    return "both" if begins_early(kernel) else "stop"


def edge_of_others(kernel: Kernel) -> Edge:
    """What the tiles in the loop may lack."""
    return "tile" if begins_early(kernel) else "stop"
