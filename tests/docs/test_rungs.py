"""Every rung's page has all parts of a lesson, in their order, in each language that has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gemmgen_docs import exercises, gain, ladder, measured
from gemmgen_docs.compared import HOPPER, RUNGS, page_of, stem

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS.parent / "examples"
FOLDERS = (DOCS / "ladder", *DOCS.glob("*/ladder"))
PAGES = {path: n for n in RUNGS for folder in FOLDERS if (path := folder / f"{n}.md").exists()}
PAGES |= {DOCS / "hopper" / page_of(name): name for name in HOPPER}
SPEED = re.compile(r"\d\S* ?(times as|% of|TFLOP|ms\b)|\b(faster|slower|measured)\b")
WHY, EXERCISE = "{ #little-gain }", "{ #exercise }"
IDEA = 200
"""The least length of what a page says before its schedule."""


def named(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_has_its_parts_in_order(page: Path) -> None:
    text, name = page.read_text(encoding="utf-8"), PAGES[page]
    parts = [f'{{{{ schedule("{name}"', f'{name}", "', f'{{{{ step("{name}"', f'{{{{ gain("{name}"']
    parts += [EXERCISE, "??? question", f'    {{{{ answer("{name}", "']
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places) and places[0] > IDEA
    assert "{{ drawing(" in text[places[0] : places[2]]
    assert text.count(EXERCISE) == text.count("{{ answer(") == 1


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_rung_that_gains_little_says_why(page: Path) -> None:
    text, found = page.read_text(encoding="utf-8"), gain.little(PAGES[page])
    assert (WHY in text) == bool(found), found
    if found:
        _, _, why = text.partition(WHY)
        assert text.index("{{ gain(") < text.index(WHY)
        assert len(why.partition("\n## ")[0].encode()) > IDEA / 2  # a Chinese character is a word


def test_every_rung_has_a_page() -> None:
    assert {page.stem for page in PAGES if page.parent == DOCS / "ladder"} == set(RUNGS)


def test_every_example_of_hopper_has_a_page() -> None:
    """Another one takes an entry of ``HOPPER`` and docs/hopper/NAME.md: no other list."""
    examples = {f"hopper/{path.stem}" for path in (EXAMPLES / "hopper").glob("*.sched")}
    assert examples == set(HOPPER)
    pages = {path.stem for path in (DOCS / "hopper").glob("*.md")}
    assert pages == {"index"} | {stem(name) for name in HOPPER}
    before = [HOPPER[name].before for name in HOPPER]
    assert all(b is None or b in list(HOPPER)[:at] or at == 0 for at, b in enumerate(before))


@pytest.mark.parametrize("page", sorted((DOCS / "hopper").glob("*.md")), ids=named)
def test_no_page_of_hopper_has_a_speed_of_its_own(page: Path) -> None:
    """Times are rows of docs/data, which functions put there."""
    assert not SPEED.search(page.read_text(encoding="utf-8"))


@pytest.mark.proof
def test_a_page_of_hopper_shows_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name in another folder is another example."""
    row = {"ms": 2.0, "tflops": 60.0, "share": 1.0, "checked": True, "gpu": "NVIDIA H200"}
    row["shape"] = dict.fromkeys("MNK", 4096)
    (tmp_path / "beyond.json").write_text(json.dumps([{**row, "name": "tma", "ms": 1.0}]))
    monkeypatch.setattr(measured, "DATA", tmp_path)
    measured.rows.cache_clear()
    try:
        assert gain.gain("hopper/tma") == ladder.times("hopper/tma") == ""
        assert ladder.hopper_table().count("measured") == 1
        rows = [{**row, "name": "async_copy", "ms": 3.0}, {**row, "name": "tma"}]
        (tmp_path / "hopper.json").write_text(json.dumps(rows))
        measured.rows.cache_clear()
        said = "At 4096 it is **1.50 times as fast as [`async_copy`](../beyond/async_copy.md)**."
        assert gain.gain("hopper/tma") == said
        assert "| 4096 x 4096 x 4096 | 2.000 | 60.00 | 100.0% | yes |" in ladder.times("hopper/tma")
        assert "of cuBLAS, 4096" in ladder.hopper_table()
        assert "measured yet" not in ladder.hopper_table()
    finally:
        measured.rows.cache_clear()


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
