"""What is known of the arguments: the ``assume`` lines, as questions that lowering asks."""

from __future__ import annotations

from gemmgen.ir.nodes import Program


def divides(program: Program, name: str, size: int) -> bool:
    """Whether ``name`` (an extent or a leading dimension) is assumed to be a multiple of
    ``size``."""
    if size == 1:
        return True
    names = {name, equal_to(program, name)}
    return any(f.name in names and f.divisor and f.divisor % size == 0 for f in program.facts)


def equal_to(program: Program, name: str) -> str:
    """The name that ``name`` is assumed equal to, or ``name`` itself."""
    for fact in program.facts:
        if fact.name == name and fact.equals is not None:
            return fact.equals
    return name
