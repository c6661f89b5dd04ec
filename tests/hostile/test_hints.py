"""A user who changes one number of a right schedule, and then follows each first hint, arrives at
a kernel, or at a hint that asks for judgement."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

from .hints import followed

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.sched"))
_NUMBER = re.compile(r"(?<==)[0-9]+\b")
ROUNDS = 12
COUNT = 200
"""Schedules of a seed."""


def changed(rng: random.Random) -> str:
    """An example with another number."""
    while True:
        text = rng.choice(EXAMPLES).read_text(encoding="utf-8")
        numbers = list(_NUMBER.finditer(text))
        if numbers and "{" not in text:
            place = rng.choice(numbers)
            old = int(place[0])
            new = rng.choice(("0", "1.5", "5000", str(old + 1), str(3 * old), str(2 * old)))
            return text[: place.start()] + new + text[place.end() :]


def outcome(text: str) -> tuple[str, list[str]]:
    """``right`` from the start, ``arrived`` by hints, ``judgement`` or ``round`` in circles."""
    said: list[str] = []
    for _ in range(ROUNDS):
        try:
            compile_source(Source(text))
            return ("arrived" if said else "right"), said
        except ScheduleError as error:
            first = error.mistakes[0]
            assert first.span is not None and first.hint
            said.append(f"{first.message}; {first.hint}")
            after = followed(error.source.text, first)
        if after is None or after == text:
            return "judgement", said
        text = after
    return "round", said


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(2))
def test_hints_after_a_changed_number_lead_to_a_kernel(seed: int) -> None:
    rng, found, circles = random.Random(seed), Counter[str](), list[list[str]]()
    for _ in range(COUNT):
        what, said = outcome(changed(rng))
        found[what] += 1
        circles += [said] if what == "round" else []
    # Of two directives each may ask for a tile that the other refuses: then the other half of the
    # hint, "or remove the line", is the one to take.
    assert len(circles) <= COUNT // 100, circles
    assert found["arrived"] > 2 * found["judgement"], found
