"""What the pages say of this version is so: each row of the tables is tried."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gemmgen_docs import (
    commands,
    compared,
    documents,
    ladder,
    language,
    measured,
    pages,
    schedules,
)

from gemmgen.errors import ScheduleError
from gemmgen.pipeline import Emitted

DOCUMENTS, ROWS = documents.read()
CANNOT_CHECK = 3
"""The exit code of a command that lacks something on this machine."""


def named(row: documents.Row) -> str:
    return f"{row.document}-{row.what}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_what_a_document_has_is_here_or_said_to_be_absent(row: documents.Row) -> None:
    assert sum(map(bool, (row.file, row.command, row.schedule, row.page))) == 1
    assert row.document in {document.key for document in DOCUMENTS}
    if not row.exists():
        assert row.later, f"{named(row)} is neither here nor planned"
        assert documents.ABSENT in row.where()


COMMANDS = sorted({(row.command, row.gpu) for row in ROWS if row.command and row.exists()})


@pytest.mark.parametrize(("line", "gpu"), COMMANDS)
def test_each_command_runs(line: str, gpu: bool) -> None:
    ran = commands.run(f"{line} --help" if gpu else line)
    assert ran.exit_code in (0, CANNOT_CHECK), ran.err
    assert ran.out or ran.err


@pytest.mark.parametrize("file", sorted({r.file for r in ROWS if r.file.endswith(".sched")}))
def test_each_schedule_file_is_right_or_refused_on_purpose(file: str) -> None:
    ran = commands.run(f"gemmgen check {file}")
    assert ran.exit_code == (2 if file == "examples/versions/v6.sched" else 0), ran.err


def test_a_row_that_is_not_here_would_be_found() -> None:
    for wrong in ({"file": "no.sched"}, {"command": "gemmgen no"}, {"schedule": "no such"}):
        row = replace(ROWS[0], **{"file": "", "command": "", "schedule": "", "page": "", **wrong})
        assert not row.exists()


@pytest.mark.parametrize("one", language.read_combinations(), ids=lambda one: one.rule)
def test_each_combination_is_taken_or_refused_as_told(one: language.Combination) -> None:
    outcome = one.outcome()
    assert isinstance(outcome, Emitted if one.accepted else ScheduleError), outcome


def test_every_directive_and_statement_is_in_the_reference() -> None:
    text = pages.render("{{ statements() }}{{ passes() }}{{ directives() }}")
    for name in (*language.EXAMPLES,):
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
    (tmp_path / "ladder.json").write_text(json.dumps([row]))
    (tmp_path / "beyond.json").write_text(json.dumps(more))
    monkeypatch.setattr(measured, "DATA", tmp_path)
    measured.rows.cache_clear()
    try:
        assert "| 1024 x 1024 x 1024 | 0.500 | 4.25 | 12.5% | yes |" in ladder.times("naive")
        assert "| 1024 x 1024 x 1024 | 0.500 | 4.25 | 50.0% | yes |" in ladder.times("split_k")
        assert ladder.times("tiled") == ""
        table = ladder._table("rung", {"naive": compared.RUNGS["naive"]})
        assert "of cuBLAS, 1024" in table and "12.5%" in table
    finally:
        measured.rows.cache_clear()


@pytest.mark.parametrize("name", (*compared.RUNGS, *compared.BEYOND))
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
