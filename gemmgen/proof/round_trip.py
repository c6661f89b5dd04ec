"""C0: the schedule's text says the schedule, and the same facts give the same bytes."""

from __future__ import annotations

from itertools import zip_longest

from gemmgen.base.source import Source
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.proof.outcome import Outcome, Subject, failed, passed
from gemmgen.schedule.formatting import format_schedule

LAYER = "C0"


def check(subject: Subject) -> Outcome:
    """Prints and parses the schedule, forwards and with its lines reversed."""
    schedule = subject.emitted.schedule
    text = format_schedule(schedule)
    for name, lines in (("", text), (" with its lines reversed", _reversed(text))):
        again = parse_schedule(Source(lines, "<canonical text>"))
        if again != schedule:
            told = _difference(text, format_schedule(again))
            return failed(LAYER, f"the canonical text{name} parses to another schedule: {told}")
        emitted = compile_schedule(again).text
        if emitted != subject.emitted.text:
            told = _difference(subject.emitted.text, emitted)
            return failed(LAYER, f"the canonical text{name} gives other bytes: {told}")
    return passed(LAYER, "the schedule's text parses back to it, and gives the same bytes again")


def _reversed(text: str) -> str:
    return "".join(line + "\n" for line in reversed(text.splitlines()))


def _difference(one: str, other: str) -> str:
    """The first line that two texts don't share."""
    for number, (a, b) in enumerate(zip_longest(one.splitlines(), other.splitlines()), 1):
        if a != b:
            return f"line {number} is {b!r}, and was {a!r}"
    return "their line ends differ"
