"""``gemmgen help dtype`` and the like say what their statements take, as the parser does."""

from __future__ import annotations

import re

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.cli.help_statements import DETAILS
from gemmgen.ir.dtypes import DTYPES
from gemmgen.language import parse_schedule
from gemmgen.schedule.words import HEADS, QUANTITIES
from tests.cli.running import gemmgen

EXAMPLES = [
    line.split("  ")[0]
    for text in DETAILS.values()
    for line in re.findall(r"^    ((?:assume|require) .*)$", text, re.MULTILINE)
]


@pytest.mark.parametrize("word", DETAILS)
def test_help_has_the_details(word: str) -> None:
    said = gemmgen("help", word).stdout
    assert HEADS[word].summary in said and DETAILS[word] in said


def test_every_type_and_quantity_is_named() -> None:
    assert not [name for name in DTYPES if not re.search(rf"\b{name}\b", DETAILS["dtype"])]
    assert not [name for name in QUANTITIES if f"require {name} " not in DETAILS["require"]]


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_examples_parse(line: str) -> None:
    assert parse_schedule(Source(f"{line}\n"))


@pytest.mark.parametrize(
    ("types", "taken"),
    [
        ("A=f16 B=bf16 C=i8", True),
        ("A=i8 B=i8 C=i32", True),
        ("A=i8 B=f32 C=i32", False),
        ("A=f64 B=f32 C=f64", False),
        ("A=tf32 B=f32 C=f32", True),
        ("A=f32 B=f32 C=tf32", False),
        ("A=f16 B=f16 C=f32 acc=f16", False),
    ],
)
def test_the_rules_of_types_are_the_parsers(types: str, taken: bool) -> None:
    try:
        parse_schedule(Source(f"dtype {types}\n"))
    except ScheduleError:
        assert not taken
    else:
        assert taken
