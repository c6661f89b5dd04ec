"""The file of trials: what a crash leaves, and what is gone on with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gemmgen.base import temporary
from gemmgen.base.errors import UsageError
from gemmgen.explore.tune import trials
from gemmgen.explore.tune.legal_points import Legal

from . import fakes


def search(**options: Any) -> fakes.Run:
    return fakes.run(*fakes.points(fakes.SMALL), **options)


@cache
def begun() -> str:
    """A file of a few trials."""
    with temporary.folder() as folder:
        path = Path(folder, "t.jsonl")
        search(log=path, seconds=10, building={"seconds": 3.0})
        return path.read_text()


def legal() -> Sequence[Legal]:
    return fakes.points(fakes.SMALL)[1].legal


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_every_trial_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = search(log=path)
    head, *lines = map(json.loads, _lines(path))
    assert head["shapes"] == [[2048, 2048, 2048]] and head["gpu"] == "Fake GPU"
    assert len(lines) == len(legal()) == len(done.order)
    assert lines[0]["settings"].keys() == fakes.points(fakes.SMALL)[0].sets.keys()
    assert {"registers", "spills", "ms", "share", "status", "reason"} <= lines[0].keys()
    about, found = trials.read(path)
    assert found == tuple(done.order) and about.gpu == "Fake GPU"


def test_a_search_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    """No point is tried twice, and the winner is that of one long search."""
    path = tmp_path / "t.jsonl"
    whole = search()
    first = search(log=path, seconds=20, batch=1, building={"seconds": 2.0})
    path.write_text(path.read_text() + '{"number": 5, "sett')  # cut off while it was written
    before = {t.number for t in first.order}
    second = search(log=path, resume=True)
    after = [t.number for t in second.order]
    assert before and not before & set(after)
    assert sorted([*before, *after]) == sorted(point.number for point in legal())
    assert second.tuned.finals.winner == whole.tuned.finals.winner
    assert len(_lines(path)) == 1 + len(legal())


def test_a_finished_search_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first = search(log=path)
    second = search(log=path, resume=True)
    assert second.order == []
    assert second.tuned.finals.winner == first.tuned.finals.winner
    raced = {number for what, number in second.runner.events if what == "time"}
    assert set(second.builder.built) == raced, "only the finalists are compiled again"


def test_a_wrong_kernel_is_not_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    best = min(legal(), key=fakes.cost).number
    search(log=path, unproved=lambda p: p.number == best)
    again = search(log=path, resume=True)
    assert again.tuned.finals.winner is not None and again.tuned.finals.winner.number != best


def test_resuming_what_is_not_there_begins_again(tmp_path: Path) -> None:
    done = search(log=tmp_path / "t.jsonl", resume=True)
    assert len(done.order) == len(legal())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gpu", "Other GPU"),
        ("code", "0123"),
        ("shapes", [[1, 1, 1]]),
        ("sets", {"tile.m": [64]}),
        ("schedule", "x"),
    ],
)
def test_refuses_trials_of_something_else(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "t.jsonl"
    head, *rest = begun().splitlines()
    text = "\n".join([json.dumps({**json.loads(head), key: value}), *rest]) + "\n"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"trials of something else.*{key}"):
        search(log=path, resume=True)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", "not json\n", "{}\n", "[1]\n", '{"gemmgen": 1}\n'])
def test_refuses_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a file of trials"):
        search(log=path, resume=True)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "damage",
    [
        {"number": [1]},
        {"number": -1},
        {"share": []},
        {"share": ["1"]},
        {"ms": [0.5, 0.5]},
        {"ms": "0.5"},
        {"status": "fine"},
        {"settings": None},
        {"settings": {"tile.m": [1]}},
        {"code": 5},
        {"registers": "many"},
        "[" * 100_000,
    ],
    ids=lambda damage: str(damage)[:40],
)
def test_a_damaged_line_is_left_out(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "t.jsonl"
    head, first, *rest = begun().splitlines()
    line = damage if isinstance(damage, str) else json.dumps({**json.loads(first), **damage})
    path.write_text("\n".join([head, line, *rest]) + "\n")
    _, found = trials.read(path)
    assert len(found) == len(rest)


@pytest.mark.parametrize("head", ['{"sets": null}', "[" * 100_000, "[]", "7"], ids=lambda x: x[:9])
def test_a_damaged_head_is_refused(tmp_path: Path, head: str) -> None:
    path = tmp_path / "t.jsonl"
    first, *rest = begun().splitlines()
    if head.startswith("{"):
        head = json.dumps({**json.loads(first), **json.loads(head)})
    path.write_text("\n".join([head, *rest]) + "\n")
    with pytest.raises(UsageError, match="not a file of trials"):
        trials.read(path)


def test_refuses_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        search(log=tmp_path / "none" / "t.jsonl")
