"""A refutation, run: the interpreter executes the kernel at the sizes of the counterexample."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gemmgen.calling.launches import Shape, spelled
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.problem import Problem
from gemmgen.proof.equivalence import nearest, same_meaning
from gemmgen.prove.discharge import Counterexample

MOST = 1 << 16
"""Elements of C above which a run takes too long."""
MOST_PRODUCTS = 1 << 25
BEYOND = 5
"""An extent that the counterexample does not name."""


def confirmed(
    lowered: LoweredProgram, problem: Problem, finding: Counterexample
) -> tuple[bool, str]:
    """Whether a run shows that the kernel is wrong; and what it shows, or why there is none."""
    why = "the sizes are too large for the interpreter"
    for shape in _shapes(lowered, problem, finding):
        if prod(shape) // max(shape[2], 1) > MOST or prod(shape) > MOST_PRODUCTS:
            continue
        try:
            found = same_meaning(lowered, problem, shape)
        except ValueError as refused:
            why = str(refused)
            continue
        if found is not None:
            return True, f"{spelled(shape)}: {found.text()}"
        why = f"the interpreter finds nothing wrong at {spelled(shape)}"
    return False, why


def _shapes(lowered: LoweredProgram, problem: Problem, finding: Counterexample) -> Iterator[Shape]:
    """The sizes of a counterexample, and larger ones: with more tiles than one."""
    interface = lowered.kernels[0].interface
    names = [interface.extent(letter) for letter in problem.letters]
    tiles = dict(interface.tiles)
    own = tuple(finding.values.get(name, tiles.get(name, BEYOND)) for name in names)
    yield nearest([lowered], problem, own)
    more = tuple(
        size + tiles.get(name, BEYOND if i == 2 and not size else 0)
        for i, (name, size) in enumerate(zip(names, own, strict=True))
    )
    if more != own:
        yield nearest([lowered], problem, more)
