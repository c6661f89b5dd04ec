"""The table of the documents' contents: every row has a counterpart, and that shows what it claims.

Commands run once each, whatever the number of rows that read their output.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
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

COMMANDS = sorted({row.command for row in ROWS if row.command and not row.schedule})
SCHEDULES = sorted({row.file for row in ROWS if row.file.endswith(".sched")})
WRITTEN = [row for row in ROWS if row.schedule and not row.command]
EDITED = [row for row in ROWS if row.schedule and row.command]
PROGRAMS = sorted({row.file for row in ROWS if row.file.endswith(".py")})
PAGES = sorted({row.page.partition("#")[0] for row in ROWS if row.page})
NAMES_OF_FILES = re.compile(r"[\w/]+\.(sched|cu)\b")
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
    assert sum(map(bool, (row.file, row.command or row.schedule, row.page))) == 1
    assert row.exists()
    assert bool(row.shows) == bool(row.page), "a page says what it shows"
    assert row.holds or not (row.schedule or row.file)
    assert row.holds or not row.command or row.gpu or "--check" in row.command
    assert not row.page or not row.holds


def test_what_is_different_says_why() -> None:
    for row in ROWS:
        assert row.status in documents.STATUSES, named(row)
        assert row.note or row.status == "here", named(row)


def test_every_document_has_rows_and_none_is_there_twice() -> None:
    names = [named(row) for row in ROWS]
    assert len(set(names)) == len(names) >= FEWEST
    assert {row.document for row in ROWS} == {document.key for document in DOCUMENTS}


@pytest.mark.by_default(
    "gemmgen check *",
    "gemmgen draw * --what [bct]*",
    "gemmgen emit *",
    "gemmgen explain * --map *",
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
@pytest.mark.parametrize("row", EDITED, ids=named)
def test_each_command_about_a_schedule_of_a_row_prints_what_it_holds(row: documents.Row) -> None:
    if COMPILED is not None and row.needs_compiler:
        pytest.skip(COMPILED)
    ran = commands.run(row.command, row.files())
    assert ran.exit_code == row.exit_code, ran.err
    shown_by([row], ran.out + ran.err)


@cache
def printed(file: str) -> str:
    """The output of a program, which checks its results."""
    ran = subprocess.run(
        [sys.executable, file], cwd=documents.ROOT, timeout=300, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.proof
@pytest.mark.parametrize("file", PROGRAMS)
def test_each_program_runs_and_finds_its_result_right(file: str) -> None:
    shown_by([row for row in ROWS if row.file == file], printed(file))


def output_of(row: documents.Row) -> str:
    """What a row that is not a page reads, without the names of files."""
    if row.file.endswith(".py"):
        return page_text.words(printed(row.file))
    if row.schedule and not row.command:
        text = documents.emitted(row.schedule)
        return page_text.words(text or documents.refusal(row.schedule))
    ran = commands.run(row.command or f"gemmgen emit {row.file}", row.files())
    return page_text.words(NAMES_OF_FILES.sub("FILE", ran.out + ran.err))


def kernel_in(output: str) -> str:
    """The kernel of an emitted text; with its program around it, it is the same."""
    return output.partition("// ---- kernel ----")[2].partition("// ---- end of kernel")[0]


def held_by_others(outputs: Mapping[documents.Row, str]) -> list[str]:
    """The rows whose claims all stand in the output of another row, unless that shows the same."""
    apart = {own: {kernel_in(own) or own} for own in outputs.values()}
    found: list[str] = []
    for row, own in outputs.items():
        claims = [page_text.words(claim) for claim in (*row.holds, *row.shows)]
        for other in apart:
            same = apart[own] == apart[other]
            if claims and not same and all(claim in other for claim in claims):
                found.append(f"{named(row)} holds in the output: {other[:200]}")
    return found


@pytest.mark.proof
def test_no_row_holds_in_the_output_of_another() -> None:
    if COMPILED is not None:
        pytest.skip(COMPILED)
    read = [row for row in ROWS if not row.page and not row.gpu]
    found = held_by_others({row: output_of(row) for row in read})
    assert not found, "\n".join(found)
    silent = [row for row in read if not row.holds]
    assert all("--check" in row.command and not output_of(row) for row in silent)


@pytest.mark.proof
def test_no_page_shows_what_another_page_claims(site: Path) -> None:
    texts = {page: page_text.of_page(site, page) for page in PAGES}
    # The page of the rows themselves quotes all of them.
    of_pages = [row for row in ROWS if row.page and not row.page.startswith("documents")]
    shown = {row: texts[row.page.partition("#")[0]] for row in of_pages}
    found = held_by_others(shown)
    assert not found, "\n".join(found)


def test_a_row_that_holds_in_the_output_of_another_would_be_found() -> None:
    one, other = (replace(ROWS[0], what=what, holds=("3 x 4",)) for what in ("one", "other"))
    assert held_by_others({one: "3 x 4 = 12", other: "3 x 4 = 12"}) == []
    (found,) = held_by_others({one: "3 x 4 = 12", replace(other, holds=("5",)): "5, 3 x 4"})
    assert found.startswith(named(one))


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
