"""The subject and the outcome of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import Emitted

Status = Literal["passed", "failed", "skipped"]


@record
class Outcome:
    """The outcome of a layer.

    ``detail`` says what was shown, or where it failed; ``reason`` why it was skipped.  ``figures``
    are additional results for scripts: registers per architecture, say.  ``notes`` are about speed,
    whatever the status.
    """

    layer: str
    status: Status
    detail: str = ""
    reason: str = ""
    figures: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    notes: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """The lines of a report: the detail or the reason, then each note."""
        return (self.detail or self.reason, *(f"note: {note}" for note in self.notes))


@record
class Subject:
    """A kernel to prove; without ``shapes`` each layer uses its own.

    ``text`` is an edited kernel in place of the emitted one: the layers that run or compile a text
    take it, those about the schedule do not.
    """

    emitted: Emitted
    shapes: tuple[Shape, ...] = ()
    text: str | None = None

    def of_text(self) -> Subject:
        """The same with the edited text as if it had been emitted."""
        if self.text is None:
            return self
        return replace(self, emitted=replace(self.emitted, text=self.text), text=None)


def passed(layer: str, detail: str) -> Outcome:
    return Outcome(layer, "passed", detail)


def failed(layer: str, detail: str) -> Outcome:
    return Outcome(layer, "failed", detail)


def skipped(layer: str, reason: str) -> Outcome:
    return Outcome(layer, "skipped", reason=reason)
