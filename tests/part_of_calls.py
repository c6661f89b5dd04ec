"""C1 and C2 of kernels that differ in one thing each: one of them at all calls, the others at some.

What one call of all shows for a family, as K = 0, a far address or an early landing, its first
kernel shows.  The others are called at every shape, with numbers and with NaN or infinities; which
orders, landings, factors and paddings, their names draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from random import Random

from gemmgen.calling.launches import Case
from gemmgen.pipeline import rewrite
from gemmgen.proof import cpu, meaning, verdicts
from gemmgen.proof.calls import Caller, landings_of
from gemmgen.proof.cases import SPAN, cases_of
from gemmgen.proof.outcome import Subject
from gemmgen.sim import programs
from gemmgen.sim.poisoned_memory import can_span

SHARE = 3
NUMBERS = ("integers", "normal", "permutation")


def is_right(subject: Subject, name: str, family: Iterable[str] = ()) -> None:
    """Asserts that C2 finds nothing: at all calls, if the kernel is the first of its ``family``."""
    emitted = subject.emitted
    if name == next(iter(family), None):
        outcome = cpu.check(subject)
        assert outcome.status == "passed", outcome
        return
    calls = part_of(tuple(cases_of(emitted, landings_of(emitted))), name)
    about = emitted.text, emitted.interface, emitted.program, calls
    complaint = verdicts.complaint_of(
        lambda: cpu.first_complaint(Caller(emitted), emitted.text, calls),
        *(cpu.LAYER, programs.identity(), *about),
    )
    assert complaint is None, complaint


def keeps_its_meaning(subject: Subject, name: str, family: Iterable[str] = ()) -> None:
    """Asserts that C1 finds nothing, after every pass at all shapes, if the kernel is the first of
    its ``family``.

    The mistake of a pass stays in the programs after it.  So the last program of other kernels is
    interpreted at all shapes, and each one before it at one of them, alternately.
    """
    if name == next(iter(family), None):
        outcome = meaning.check(subject)
        assert outcome.status == "passed", outcome
        return
    steps, shapes = rewrite(subject.emitted.schedule), meaning.shapes_of(subject)
    for at, step in enumerate(steps):
        one = (shapes[at % len(shapes)],)
        complaint = meaning.difference(step, shapes if step is steps[-1] else one)
        assert complaint is None, f"after {step.directive}: {complaint}"


def part_of(calls: tuple[Case, ...], name: str) -> tuple[Case, ...]:
    """A third of the calls at each shape with numbers, and of the others there."""
    alike: dict[object, list[Case]] = {}
    for case in calls:
        if not case.far or can_span(SPAN):
            key = case.shape, case.far, case.data in NUMBERS
            alike.setdefault(key, []).append(case)
    dice = Random(name)
    return tuple(
        case for found in alike.values() for case in dice.sample(found, ceil(len(found) / SHARE))
    )
