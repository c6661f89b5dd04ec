"""What the pages say of this version is so: each row of the tables is tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gemmgen_docs import (
    compared,
    ladder,
    language,
    measured,
    pages,
    schedules,
)

from gemmgen.base.errors import ScheduleError
from gemmgen.language import VOCABULARY
from gemmgen.pipeline import Emitted


@pytest.mark.parametrize("one", language.read_combinations(), ids=lambda one: one.rule)
def test_each_combination_is_taken_or_refused_as_documented(one: language.Combination) -> None:
    outcome = one.outcome()
    assert isinstance(outcome, Emitted if one.accepted else ScheduleError), outcome


def test_every_directive_and_statement_is_in_the_reference() -> None:
    text = pages.render("{{ statements() }}{{ passes() }}{{ directives() }}")
    for name in VOCABULARY.statements:
        assert name in text


def test_every_docstring_has_its_parts() -> None:
    for name, module in language._modules():
        doc = language.parse(language._doc(module))
        assert doc.title.startswith(f"{name}: ") and doc.paragraphs
        assert doc.directive.split()[0] == name
        assert doc.before and doc.after


def test_measured_figures_are_shown_where_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"name": "naive", "shape": {"M": 1024, "N": 1024, "K": 1024}, "ms": 0.5, "tflops": 4.25}
    row |= {"share": 0.125, "checked": True, "gpu": "NVIDIA H200"}
    more = [{**row, "name": "tiled", "ms": None}, {**row, "name": "split_k", "share": 0.5}]
    more += [{**row, "name": "split_k", "shape": {"M": 512, "N": 512, "K": 8192}}]
    (tmp_path / "ladder.json").write_text(json.dumps([row]))
    (tmp_path / "beyond.json").write_text(json.dumps(more))
    monkeypatch.setattr(measured, "DATA", tmp_path)
    measured.rows.cache_clear()
    try:
        assert "| 1024 x 1024 x 1024 | 0.500 | 4.25 | 12.5% | yes |" in ladder.times("naive")
        assert "| 1024 x 1024 x 1024 | 0.500 | 4.25 | 50.0% | yes |" in ladder.times("split_k")
        assert "| 512 x 512 x 8192 | 0.500 | 4.25 | 12.5% | yes |" in ladder.times("split_k")
        assert ladder.times("tiled") == "" and list(measured.cubes("split_k")) == [1024]
        table = ladder._table("rung", {"naive": compared.RUNGS["naive"]})
        assert "of cuBLAS, 1024" in table and "12.5%" in table
    finally:
        measured.rows.cache_clear()


@pytest.mark.by_default("tensor_core", "vectorized", "split_k", "fused", "hopper/tma")
@pytest.mark.parametrize("name", (*compared.RUNGS, *compared.HOPPER, *compared.BEYOND))
def test_an_example_is_set_against_another_schedule(name: str) -> None:
    before = compared.of(name).text()
    if before is None:
        assert name == "naive"
        return
    text = schedules.text(name)
    assert schedules.statements(before) != schedules.statements(text)
    assert schedules.kernel(before) != schedules.kernel(text)


def test_a_statement_that_is_not_there_cannot_be_left_out() -> None:
    with pytest.raises(AssertionError, match="split_k"):
        schedules.without(schedules.text("naive"), "split_k")


def test_a_statement_is_new_where_it_says_something_new() -> None:
    split = ladder._facts("double_buffer A B") | ladder._facts(
        "double_buffer A.register B.register"
    )
    assert ladder._facts("double_buffer A B A.register B.register") == split
    assert ladder._facts("pad A by=4") != ladder._facts("pad A by=8")
    assert len(ladder._facts("cache_shared A[k, m] B")) == 2
    assert ladder._facts("tile m=16 n=16") == {"tile m=16 n=16"}
    assert "A.register" not in ladder._new("async_copy")
