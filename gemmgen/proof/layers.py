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
"""Each layer of this folder and its file."""

PROVED = "P"
"""The facts for all sizes, which the caller has to hand over: ``gemmgen.prove`` builds on this."""
ORDER = ("C0", "C1", "C2", "C3", PROVED, "G2")

OF_SCHEDULE = ("C0", "C1", PROVED)
"""Layers about the schedule and its program; the others are about the text."""

NEEDED = ("C1", "C2")
"""Layers that a verdict always needs."""
SHAPES = "shapes"
"""In place of a layer: the shapes that were asked for and that no layer ran the kernel at."""


Check = Callable[[Subject], Outcome]


def verify(subject: Subject, proved: Check | None = None) -> Iterator[Outcome]:
    """The outcome of each layer, as soon as it is known; then the shapes that were asked for at
    which the kernel did not run, if there are any.  ``proved`` is layer P."""
    outcomes: list[Outcome] = []
    for layer in ORDER:
        check = proved if layer == PROVED else _check_in(LAYERS.get(layer))
        if check is None:
            continue
        outcomes.append(_outcome(layer, check, subject))
        yield outcomes[-1]
    left = _not_run(subject, outcomes)
    if left:
        yield skipped(SHAPES, _why_left(left))


def _check_in(file: str | None) -> Check | None:
    if file is None:
        return None
    return cast(Check, importlib.import_module(f"gemmgen.proof.{file}").check)


def _outcome(layer: str, check: Check, subject: Subject) -> Outcome:
    """The outcome of one layer; what this machine's file system refuses is not a mistake of the
    kernel's."""
    given = subject if layer in OF_SCHEDULE else subject.of_text()
    try:
        return check(given)
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
