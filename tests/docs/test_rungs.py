"""Every rung's page has all parts of a lesson, in their order, in each language that has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gemmgen_docs import exercises, gain, measured
from gemmgen_docs.compared import RUNGS

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = (DOCS / "ladder", *DOCS.glob("*/ladder"))
PAGES = [path for name in RUNGS for folder in FOLDERS if (path := folder / f"{name}.md").exists()]
WHY, EXERCISE = "{ #little-gain }", "{ #exercise }"
IDEA = 200
"""The least length of what a page says before its schedule."""


def named(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_has_its_parts_in_order(page: Path) -> None:
    text, name = page.read_text(encoding="utf-8"), page.stem
    parts = [f'{{{{ schedule("{name}"', f'{name}", "', f'{{{{ step("{name}"', f'{{{{ gain("{name}"']
    parts += [EXERCISE, "??? question", f'    {{{{ answer("{name}", "']
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places) and places[0] > IDEA
    assert "{{ drawing(" in text[places[0] : places[2]]
    assert text.count(EXERCISE) == text.count("{{ answer(") == 1


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_rung_that_gains_little_says_why(page: Path) -> None:
    text, found = page.read_text(encoding="utf-8"), gain.little(page.stem)
    assert (WHY in text) == bool(found), found
    if found:
        _, _, why = text.partition(WHY)
        assert text.index("{{ gain(") < text.index(WHY)
        assert len(why.partition("\n## ")[0].encode()) > IDEA / 2  # a Chinese character is a word


def test_every_rung_has_a_page() -> None:
    assert {page.stem for page in PAGES if page.parent == DOCS / "ladder"} == set(RUNGS)


def test_a_gain_is_the_time_before_over_the_time_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"naive": (1.0, 8.0, 80.0), "tiled": (0.8, 7.9, 40.0)}
    rows = [
        {"name": name, "ms": ms, "shape": dict.fromkeys("MNK", size)}
        for name, each in times.items()
        for size, ms in zip((512, 1024, 4096), each, strict=True)
    ]
    (tmp_path / "ladder.json").write_text(json.dumps(rows))
    monkeypatch.setattr(measured, "DATA", tmp_path)
    measured.rows.cache_clear()
    try:
        said = "At 4096 it is **2.00 times as fast as [`naive`](naive.md)**; 1.25 at 512 and 1.01"
        assert gain.gain("tiled") == f"{said} at 1024."
        assert list(gain.little("tiled")) == [1024]
    finally:
        measured.rows.cache_clear()


def test_an_answer_shows_the_change_and_what_the_command_prints() -> None:
    text = exercises.answer(
        "tiled", "tile m=64 n=64 k=32", "gemmgen check mine.sched", "64 x 64 = 4096 threads"
    )
    assert "-tile            m=32 n=32 k=32\n+tile            m=64 n=64 k=32\n" in text
    assert "mine.sched:2:1: error: the tile needs too many threads" in text


def test_an_answer_that_is_not_so_is_refused() -> None:
    with pytest.raises(AssertionError, match="lacks '64 x 64 = 4097 threads'"):
        exercises.answer(
            "tiled", "tile m=64 n=64 k=32", "gemmgen check mine.sched", "64 x 64 = 4097 threads"
        )
    with pytest.raises(AssertionError, match="prints none of"):
        exercises.answer("tiled", "tile m=16", "gemmgen check mine.sched", parts=("no such",))
