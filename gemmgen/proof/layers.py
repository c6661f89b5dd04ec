"""All layers in order, and the ones that a verdict needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import cast

from gemmgen.proof.gates import gates_of
from gemmgen.proof.outcome import Outcome, Subject
from gemmgen.schedule.model import Schedule

LAYERS = {
    "C0": "round_trip",
    "C1": "meaning",
    "C2": "cpu",
    "C3": "compiled",
    "G2": "gpu",
}
"""Each layer and its file in this folder."""

NEEDED = ("C1", "C2")
"""Layers that a verdict always needs."""


def verify(subject: Subject) -> Iterator[Outcome]:
    """The outcome of each layer, as soon as it is known."""
    for file in LAYERS.values():
        module = importlib.import_module(f"gemmgen.proof.{file}")
        yield cast(Callable[[Subject], Outcome], module.check)(subject)


def needed_by(schedule: Schedule) -> tuple[str, ...]:
    """Layers that this schedule needs: C3, if it has ``require`` lines for a compiler."""
    return ("C3",) if gates_of(schedule) else ()


def exit_code(outcomes: tuple[Outcome, ...], required: tuple[str, ...] = ()) -> int:
    """1 if a layer failed; 0 if the needed and the required ones passed; else 3."""
    if any(outcome.status == "failed" for outcome in outcomes):
        return 1
    held = {outcome.layer for outcome in outcomes if outcome.status == "passed"}
    return 0 if held.issuperset((*NEEDED, *required)) else 3
