"""What a program uses that not every architecture has: types, ways of copying, instructions."""

from __future__ import annotations

from gemmgen.ir.edit import contraction, copies
from gemmgen.ir.nodes import Program
from gemmgen.ir.target import SINCE


def needs(program: Program) -> frozenset[str]:
    """Those of its types, copy modes and atoms that only came with some architecture."""
    problem, kernel = program.problem, program.main
    types = {problem.a.dtype, problem.b.dtype, problem.c.dtype, *dict(problem.others).values()}
    used = {*types, *(copy.mode for copy in copies(kernel)), contraction(kernel).atom}
    return frozenset(used & SINCE.keys())


def first_architecture(program: Program) -> int:
    """The first one that has all of them; 0 if every one has."""
    return max((SINCE[need] for need in needs(program)), default=0)
