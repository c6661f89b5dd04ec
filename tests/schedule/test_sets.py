"""Sets make a file a search space; settings make it a schedule."""

from __future__ import annotations

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.language import choices
from gemmgen.schedule.model import Choice
from gemmgen.schedule.sets import Settings

from .helpers import refused, schedule

SPACE = """\
let t = {64, 128}
tile m=t n=t k={8, 16}
register_block m=8 n=8 order={rows, zigzag}
vectorize A width={1, 4}
vectorize B.global C width={2, 4}
pad A by=4
"""
SETTLED = (
    ("t", 128),
    ("tile.k", 16),
    ("register_block.order", "zigzag"),
    ("vectorize.A.width", 1),
    ("vectorize.B.global.width", 2),
)


def test_the_choices_of_a_space() -> None:
    assert choices(Source(SPACE)) == {
        "t": Choice((64, 128)),
        "tile.k": Choice((8, 16)),
        "register_block.order": Choice(("rows", "zigzag")),
        "vectorize.A.width": Choice((1, 4)),
        "vectorize.B.global.width": Choice((2, 4)),
    }
    assert choices(Source("tile m=8 n=8")) == {}


def test_a_settled_space_is_the_schedule_of_its_values() -> None:
    assert schedule(SPACE, SETTLED) == schedule(
        "tile m=128 n=128 k=16\nregister_block m=8 n=8 order=zigzag\n"
        "vectorize B.global C width=2\npad A by=4"
    )


def test_every_open_set_is_reported() -> None:
    messages = [mistake.message for mistake in refused(SPACE).mistakes]
    assert messages == [
        "let t is a set {64, 128}: choose one with --set t=64",
        "tile k is a set {8, 16}: choose one with --set tile.k=8",
        "register_block order is a set {rows, zigzag}: "
        "choose one with --set register_block.order=rows",
        "vectorize A width is a set {1, 4}: choose one with --set vectorize.A.width=1",
        "vectorize B.global width is a set {2, 4}: "
        "choose one with --set vectorize.B.global.width=2",
    ]


def test_an_unknown_key_lists_the_keys() -> None:
    error = refused("tile m={64, 128} n=64", (("tile.m", 64), ("tile.q", 1)))
    assert error.render() == (
        "x.sched: error: --set tile.q=1: no argument of this file has that key\n"
        "  hint: did you mean --set tile.n=1? the keys of this file are tile.m, tile.n"
    )
    assert "this file has no argument" in refused("cache_shared A B", (("tile.m", 64),)).hint


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ((("tile.m", 16),), "tile m=16 n=64 k=8\nvectorize A width=4\nvectorize B width=2"),
        ((("t", "32"),), "tile m=64 n=32 k=8\nvectorize A width=4\nvectorize B width=2"),
        (
            (("vectorize.B.width", 4), ("tile.k", 16)),
            "tile m=64 n=64 k=16\nvectorize A B width=4",
        ),
    ],
)
def test_a_setting_replaces_any_value(settings: Settings, text: str) -> None:
    stated = "let t = 64\ntile m=64 n=t k=8\nvectorize A width=4\nvectorize B width=2\n"
    assert schedule(stated, settings) == schedule(text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((("tile.m", "some"),), "some"),
        ((("tile.m", "8 n=9"),), "8 n=9"),
        ((("tile.m", -8),), "-8"),
        ((("vectorize.width", 4),), "no argument of this file has that key"),  # of two statements
        ((("tile.n", 4),), "no argument of this file has that key"),  # a let gives it
    ],
)
def test_a_wrong_setting_is_refused(settings: Settings, message: str) -> None:
    stated = "let t = 64\ntile m=64 n=t k=8\nvectorize A width=4\nvectorize B width=2\n"
    assert message in refused(stated, settings).message


def test_a_value_outside_the_set_is_refused() -> None:
    error = refused("tile m={64, 128} n=64", (("tile.m", 32),))
    assert (error.message, error.hint, error.column) == (
        "--set tile.m=32: the set has no such value",
        "one of {64, 128}",
        8,
    )


def test_the_choices_of_a_wrong_file_are_an_error() -> None:
    with pytest.raises(ScheduleError):
        choices(Source("tile m={64, 0} n=64"))
