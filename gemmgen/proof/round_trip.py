"""C0: texts parse back to what they were printed from, and the same facts give the same bytes."""

from __future__ import annotations

from itertools import zip_longest

from gemmgen.base.source import Source
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.textcursor import IRTextError
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule, expand, lower
from gemmgen.proof.outcome import Outcome, Subject, failed, passed
from gemmgen.schedule.formatting import format_schedule

LAYER = "C0"


def check(subject: Subject) -> Outcome:
    """Prints and parses the schedule, forwards and with its lines reversed, and each level of its
    IR."""
    schedule = subject.emitted.schedule
    text = format_schedule(schedule)
    for name, lines in (("", text), (" with its lines reversed", _reversed(text))):
        again = parse_schedule(Source(lines, "<canonical text>"))
        if again != schedule:
            difference = _difference(text, format_schedule(again))
            return failed(
                LAYER, f"the canonical text{name} parses to another schedule: {difference}"
            )
        emitted = compile_schedule(again).text
        if emitted != subject.emitted.text:
            difference = _difference(subject.emitted.text, emitted)
            return failed(LAYER, f"the canonical text{name} gives other bytes: {difference}")
    unread = unread_level(subject.emitted.program)
    if unread is not None:
        return failed(LAYER, unread)
    return passed(
        LAYER, "the texts of the schedule and of its IR parse back, and give the same bytes again"
    )


def unread_level(program: Program) -> str | None:
    """A sentence about the first level of a program's IR whose text parses to another program."""
    expanded = expand(program)
    for level in (program, expanded, lower(expanded)):
        text = print_ir(level)
        try:
            again = parse_ir(text, type(level))
        except IRTextError as wrong:
            return f"the text of its {type(level).__name__} does not read back: {wrong}"
        if again != level:
            difference = _difference(text, print_ir(again))
            return f"the text of its {type(level).__name__} reads back as another: {difference}"
    return None


def _reversed(text: str) -> str:
    return "".join(line + "\n" for line in reversed(text.splitlines()))


def _difference(one: str, other: str) -> str:
    """The first line in which two texts differ."""
    for number, (a, b) in enumerate(zip_longest(one.splitlines(), other.splitlines()), 1):
        if a != b:
            return f"line {number} is {b!r}, and was {a!r}"
    return "their line ends differ"
