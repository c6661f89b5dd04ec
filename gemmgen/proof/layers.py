"""All layers in order, and the ones that a verdict needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import cast

from gemmgen.ir.launch_shape import Shape, spelled
from gemmgen.proof.gates import gates_of
from gemmgen.proof.outcome import Outcome, Subject, skipped
from gemmgen.schedule.model import Schedule

LAYERS = {
    "C0": "round_trip",
    "C1": "meaning",
    "C2": "cpu",
    "C3": "compiled",
    "G2": "gpu",
}
"""Each layer and its file in this folder."""

OF_SCHEDULE = ("C0", "C1")
"""Layers about the schedule and its program; the others are about the text."""

NEEDED = ("C1", "C2")
"""Layers that a verdict always needs."""
SHAPES = "shapes"
"""In place of a layer: the shapes that were asked for and that no layer ran the kernel at."""


def verify(subject: Subject) -> Iterator[Outcome]:
    """The outcome of each layer, as soon as it is known; then the shapes that were asked for at
    which the kernel did not run, if there are any."""
    outcomes: list[Outcome] = []
    for layer, file in LAYERS.items():
        outcomes.append(_outcome(layer, file, subject))
        yield outcomes[-1]
    left = _not_run(subject, outcomes)
    if left:
        yield skipped(SHAPES, _why_left(left))


def _outcome(layer: str, file: str, subject: Subject) -> Outcome:
    """The outcome of one layer; what this machine's file system refuses is not a mistake of the
    kernel's."""
    module = importlib.import_module(f"gemmgen.proof.{file}")
    given = subject if layer in OF_SCHEDULE else subject.of_text()
    try:
        return cast(Callable[[Subject], Outcome], module.check)(given)
    except OSError as wrong:
        return skipped(layer, f"this machine can't run it: {wrong}")


def _not_run(subject: Subject, outcomes: list[Outcome]) -> tuple[Shape, ...]:
    """The shapes that were asked for at which neither C2 nor G2 ran the kernel."""
    from gemmgen.proof.cpu import is_small

    ran = {outcome.layer for outcome in outcomes if outcome.status != "skipped"}
    if "G2" in ran:
        return ()
    return tuple(s for s in subject.shapes if not ("C2" in ran and is_small(s)))


def _why_left(shapes: tuple[Shape, ...]) -> str:
    from gemmgen.proof.cpu import MOST

    named = ", ".join(map(spelled, shapes))
    return f"not run at {named}: C2 runs at most {MOST:,} multiply-adds, and G2 needs a GPU"


def needed_by(schedule: Schedule) -> tuple[str, ...]:
    """Layers that this schedule needs: C3, if it has ``require`` lines for a compiler."""
    return ("C3",) if gates_of(schedule) else ()


def exit_code(outcomes: tuple[Outcome, ...], required: tuple[str, ...] = ()) -> int:
    """1 if a layer failed; 0 if the needed and the required ones passed, at every shape that was
    asked for; else 3."""
    if any(outcome.status == "failed" for outcome in outcomes):
        return 1
    if any(outcome.layer == SHAPES for outcome in outcomes):
        return 3
    held = {outcome.layer for outcome in outcomes if outcome.status == "passed"}
    return 0 if held.issuperset((*NEEDED, *required)) else 3
