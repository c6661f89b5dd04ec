"""Damaged schedules are schedules still, or errors: no traceback, no waiting.

GEMMGEN_MUTATIONS=10000 runs that many of each kind.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from time import process_time

import pytest

from gemmgen.base.errors import GemmgenError, ScheduleError
from gemmgen.base.source import Source
from gemmgen.language import choices, fmt_source, parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.schedule.read import decode

from .mutations import BYTES, STRUCTURE, Mutation, mutant

COUNT = int(os.environ.get("GEMMGEN_MUTATIONS", "0"))
SLICES = 4
SECONDS = 2.0
DEFAULT = b"tile m=8 n=32"


def outcome(data: bytes) -> str:
    """What a command makes of ``data``: ``taken``, ``a space`` or ``refused``; else it raises."""
    try:
        source = decode(data, "x.sched")
        emitted = compile_schedule(parse_schedule(source))
    except ScheduleError as error:
        _check_refusal(error)
        return "a space" if _is_space(data) else "refused"
    assert emitted.text.isascii() and emitted.text.count("// ---- ") == 2
    again = compile_schedule(parse_schedule(Source(fmt_source(source))))
    assert again.text == emitted.text, "fmt changed what the schedule says"
    return "taken"


def _check_refusal(error: ScheduleError) -> None:
    output = error.render()
    assert len(output) < 40_000 and all(c in "\n\t" or c.isprintable() for c in output)
    for mistake in error.mistakes:
        assert mistake.span is not None, mistake
        assert 0 <= mistake.span.start <= mistake.span.end <= len(error.source.text), mistake
        assert mistake.message and mistake.hint and "\n" not in mistake.message + mistake.hint


def _is_space(data: bytes) -> bool:
    """Is it a search space, where every value gives a schedule or a located error?"""
    try:
        source = decode(data, "x.sched")
        sets = choices(source)
    except ScheduleError:
        return False
    rng = random.Random(len(data))
    settings = tuple((key, rng.choice(choice.values)) for key, choice in sets.items())
    try:
        compile_schedule(parse_schedule(source, settings))
    except ScheduleError as error:
        _check_refusal(error)
    return bool(sets)


@pytest.mark.by_default("structure-0", "bytes-0")
@pytest.mark.parametrize("slice_of", range(SLICES))
@pytest.mark.parametrize("kinds", (BYTES, STRUCTURE), ids=("bytes", "structure"))
def test_a_damaged_schedule_is_one_or_an_error(
    kinds: tuple[Mutation, ...], slice_of: int, proof: bool
) -> None:
    count = COUNT or (250 if proof else 80)
    for number in range(slice_of, count, SLICES):
        data = mutant(number, kinds)
        start = process_time()
        try:
            outcome(data)
        except Exception as wrong:
            raise AssertionError(f"mutant {number}: {wrong!r} of {data!r}") from wrong
        assert process_time() - start < SECONDS, f"mutant {number}: {data!r}"


def test_the_sound_schedules_are_taken() -> None:
    assert outcome(DEFAULT) == "taken"
    with pytest.raises(GemmgenError):
        parse_schedule(decode(b"\xff", "x.sched"))


@pytest.mark.parametrize("kinds", (BYTES, STRUCTURE), ids=("bytes", "structure"))
def test_damaged_schedules_of_both_outcomes_occur(kinds: tuple[Mutation, ...]) -> None:
    found = Counter[str]()
    for number in range(80):
        found[outcome(mutant(number, kinds))] += 1
        if min(found["taken"], found["refused"]) > 1:
            return
    raise AssertionError(found)
