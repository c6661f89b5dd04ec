"""Schedules of examples/best are the fastest of the table that ships with gemmgen."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import best_examples
from best_examples import Best

from gemmgen.base.source import Source
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule

ALL = {one.stem: one for one in best_examples.best()}
ALTERNATIVES = {"large_f16", "tma_1536_km_kn", "tma_3072_km_kn", "tma_5120_km_kn"}
"""Files for WMMA, and for f32 with TMA, which the table's winners are not."""


def test_each_file_is_of_the_table_or_an_alternative() -> None:
    assert {path.stem for path in best_examples.FOLDER.glob("*.sched")} == set(ALL) | ALTERNATIVES


@pytest.mark.parametrize("stem", ALL)
def test_no_other_schedule_is_faster_at_its_shape(stem: str) -> None:
    assert ALL[stem].overtaken_by() is None, "run: python benchmarks/best_examples.py"


@pytest.mark.parametrize("stem", ["bf16_1024", "bias_relu", "batched"])
def test_what_is_written_is_the_schedule_of_the_result(
    stem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the names of the problem, and in the form of the other files."""
    one = ALL[stem]
    text = one.text(one.results()[0])
    own = parse_schedule(Source(one.path.read_text("utf-8")))
    assert format_schedule(parse_schedule(Source(text))) == format_schedule(own)
    monkeypatch.setattr(best_examples, "FOLDER", tmp_path)
    one.path.write_text(text, encoding="utf-8")
    assert one.overtaken_by() is None


def test_a_slower_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ALL["bf16_4096"]
    (group,) = re.findall(r"group=\d+", one.path.read_text("utf-8"))
    slower = one.path.read_text("utf-8").replace(group, "group=2")
    monkeypatch.setattr(best_examples, "FOLDER", tmp_path)
    one.path.write_text(slower, encoding="utf-8")
    found = Best(one.stem, one.problem, one.shape).overtaken_by()
    assert found is not None and "group=2\n" not in found.schedule
