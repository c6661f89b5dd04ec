"""C1: the program means the same after every pass."""

from __future__ import annotations

from math import prod

from gemmgen.base.source import counted
from gemmgen.ir.launch_shape import Shape, spelled
from gemmgen.pipeline import Step, make_concrete, rewrite
from gemmgen.proof import verdicts
from gemmgen.proof.default_shapes import c1_shapes
from gemmgen.proof.equivalence import same_meaning
from gemmgen.proof.outcome import Outcome, Subject, failed, passed

LAYER = "C1"
MOST = 1 << 16
"""Elements of C above which a shape is too large for the interpreter."""


def check(subject: Subject) -> Outcome:
    """Interprets the program after each pass; a failure names the first wrong pass."""
    steps = rewrite(subject.emitted.schedule)
    shapes = shapes_of(subject)
    for step in steps:
        complaint = difference(step, shapes)
        if complaint is not None:
            return failed(LAYER, f"after {step.directive}: {complaint}")
    names = ", ".join(step.directive for step in steps)
    return passed(LAYER, f"after each of {names}, at {counted(len(shapes), 'shape')}")


def difference(step: Step, shapes: tuple[Shape, ...]) -> str | None:
    """A sentence about the first difference of ``step``'s program from its problem, or None."""
    lowered, problem = make_concrete(step.program), step.program.problem

    def prove() -> str | None:
        for shape in shapes:
            found = same_meaning(lowered, problem, shape)
            if found is not None:
                return f"{spelled(shape)}: {found.text()}"
        return None

    return verdicts.complaint_of(prove, LAYER, lowered, problem, shapes)


def shapes_of(subject: Subject) -> tuple[Shape, ...]:
    """The given shapes that are small enough, or the layer's own."""
    given = tuple(s for s in subject.shapes if s[0] * s[1] * prod(s[3:]) <= MOST)
    return given or c1_shapes(subject.emitted)
