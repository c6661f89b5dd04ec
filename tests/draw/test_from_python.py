"""``gemmgen.drawing``: the command's drawings as values that a notebook shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import gemmgen
from gemmgen.cli.group import main

EXAMPLES = Path(__file__).parents[2] / "examples"
TILED, NAIVE = EXAMPLES / "tiled.sched", EXAMPLES / "naive.sched"


def printed(*words: str) -> str:
    result = CliRunner().invoke(main, ["draw", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_what_the_command_draws() -> None:
    found = gemmgen.drawing(TILED, "tiles", (64, 96, 128))
    options = (str(TILED), "--what", "tiles", "--shape", "64x96x128")
    assert found.svg == printed(*options, "--format", "svg")
    assert str(found) == printed(*options)


def test_several_are_drawn_together() -> None:
    found = gemmgen.drawing({"naive": NAIVE, "tiled": TILED}, "threads")
    command = (str(NAIVE), str(TILED), "--what", "threads", "--format", "svg")
    assert found.svg == printed(*command)


def test_a_notebook_shows_the_svg() -> None:
    found = gemmgen.drawing(NAIVE, "threads")
    assert found._repr_svg_() == found.svg and found.svg.startswith("<svg")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"what": "nothing"}, "what='nothing': there are tiles, threads"),
        ({"gpu": "Voodoo"}, "gpu='Voodoo': there are"),
        ({"schedule": {}}, "no schedule was given"),
        ({"what": "copies", "schedule": NAIVE}, "shared memory"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(gemmgen.UsageError, match=message):
        gemmgen.drawing(**{"schedule": TILED, **wrong})
