"""The table of the documents' contents: every row has a counterpart, and that shows what it claims.

Commands run once each, whatever the number of rows that read their output.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from gemmgen_docs import commands, documents

from gemmgen.gpu import compiler, device

from . import page_text

DOCUMENTS, ROWS = documents.read()
CANNOT_CHECK = 3
"""The exit code of a command that lacks something on this machine."""
REFUSED = 2
FEWEST = 172
"""Items that were counted in the documents."""

COMMANDS = sorted({row.command for row in ROWS if row.command})
SCHEDULES = sorted({row.file for row in ROWS if row.file.endswith(".sched")})
WRITTEN = [row for row in ROWS if row.schedule]
PROGRAMS = sorted({row.file for row in ROWS if row.file.endswith(".py")})
PAGES = sorted({row.page.partition("#")[0] for row in ROWS if row.page})
COMPILED = compiler.available()


def named(row: documents.Row) -> str:
    return f"{row.document}-{row.what}"


def lacking(rows: Sequence[documents.Row], text: str) -> list[str]:
    """What the rows claim of ``text`` and it does not have."""
    found = page_text.words(text)
    return [
        f"{named(row)}: {claim}"
        for row in rows
        for claim in (*row.holds, *row.shows)
        if page_text.words(claim) not in found
    ]


def shown_by(rows: Sequence[documents.Row], text: str) -> None:
    missing = lacking(rows, text)
    assert not missing, "\n".join([*missing, "is not in:", text])


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_what_a_document_has_is_here_and_something_shows_it(row: documents.Row) -> None:
    assert sum(map(bool, (row.file, row.command, row.schedule, row.page))) == 1
    assert row.exists()
    assert bool(row.shows) == bool(row.page), "a page says what it shows"
    assert row.holds or not (row.schedule or row.file.endswith(".sched"))
    assert row.holds or not row.command or row.gpu or "--check" in row.command
    assert not row.page or not row.holds


def test_what_is_different_says_why() -> None:
    for row in ROWS:
        assert row.status in documents.STATUSES, named(row)
        assert row.note or row.status == "here", named(row)


def test_every_document_has_rows_and_none_stands_twice() -> None:
    names = [named(row) for row in ROWS]
    assert len(set(names)) == len(names) >= FEWEST
    assert {row.document for row in ROWS} == {document.key for document in DOCUMENTS}


@pytest.mark.by_default(
    "gemmgen check *",
    "gemmgen draw * --what [bct]*",
    "gemmgen emit *",
    "gemmgen explain * --map *",
    "gemmgen explain examples/tiled.sched --shape 256",
    "gemmgen help *",
    "gemmgen show *",
    "gemmgen suggest *",
)
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_what_its_rows_hold(command: str) -> None:
    rows = [row for row in ROWS if row.command == command]
    if COMPILED is not None and all(row.needs_compiler for row in rows):
        pytest.skip(COMPILED)
    (code,) = {row.exit_code for row in rows}
    ran = commands.run(command)
    if any(row.gpu for row in rows) and device.missing() is not None:
        assert ran.exit_code == CANNOT_CHECK, ran
        assert "no kernel can be launched" in ran.err or "GPU" in ran.err, ran
    else:
        assert ran.exit_code == code, ran.err
    read = [row for row in rows if COMPILED is None or not row.needs_compiler]
    shown_by(read, ran.out + ran.err)


@pytest.mark.parametrize("file", SCHEDULES)
def test_each_schedule_file_gives_a_text_that_has_what_its_rows_hold(file: str) -> None:
    rows = [row for row in ROWS if row.file == file]
    ran = commands.run(f"gemmgen emit {file}")
    assert ran.exit_code == (REFUSED if any(row.refused for row in rows) else 0), ran.err
    shown_by(rows, ran.out + ran.err)


@pytest.mark.parametrize("row", WRITTEN, ids=named)
def test_each_schedule_gives_a_text_that_has_what_its_row_holds(row: documents.Row) -> None:
    text = documents.emitted(row.schedule)
    assert (text is None) == row.refused
    shown_by([row], text if text is not None else documents.refusal(row.schedule))


@pytest.mark.proof
@pytest.mark.parametrize("file", PROGRAMS)
def test_each_program_runs_and_finds_its_result_right(file: str) -> None:
    ran = subprocess.run([sys.executable, file], cwd=documents.ROOT, timeout=300)
    assert ran.returncode == 0


@pytest.mark.proof
@pytest.mark.parametrize("page", PAGES)
def test_each_page_shows_what_its_rows_claim(page: str, site: Path) -> None:
    rows = [row for row in ROWS if row.page.partition("#")[0] == page]
    html = page_text.html_of(site, page)
    shown_by(rows, page_text.of_html(html))
    for row in rows:
        _, _, anchor = row.page.partition("#")
        assert not anchor or f'id="{anchor}"' in html, row


@pytest.mark.proof
def test_the_page_shows_each_status(site: Path) -> None:
    text = page_text.of_page(site, "documents.md")
    for row in ROWS:
        assert f"{row.kind} {page_text.words(row.what)} {row.status}" in text, named(row)


def test_a_row_that_is_not_here_would_be_found() -> None:
    places = {"file": "", "command": "", "schedule": "", "page": ""}
    absent = {"file": "no.sched", "command": "gemmgen no", "schedule": "no such", "page": "no.md"}
    for kind, value in absent.items():
        row = replace(ROWS[0], **{**places, kind: value})
        assert not row.exists()
        with pytest.raises(AssertionError, match="not here"):
            row.where()


def test_a_claim_that_does_not_hold_would_be_found() -> None:
    row = replace(ROWS[0], holds=("a  b", "no such text"))
    assert lacking([row], "x a\nb y") == [f"{named(row)}: no such text"]


def test_a_page_is_read_as_text() -> None:
    html = "<p>a<code>b</code></p><style>no</style><table><tr><td>1</td><td>2</td></tr></table>"
    assert page_text.of_html(html) == "ab 1 2"
