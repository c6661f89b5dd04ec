"""The contents of the documents and their counterparts here, from ``data/documents/*.toml``."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source
from gemmgen_docs import commands, schedules
from gemmgen_docs.compared import stem
from gemmgen_docs.markdown import cell, code, table

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parents[1] / "data" / "documents"

Status = Literal["here", "different"]
MINE = "my.sched"
STATUSES: tuple[str, ...] = get_args(Status)


@dataclass(frozen=True)
class Row:
    """One item of a document and its one counterpart.

    - A ``command``: its output (or error) has what it ``holds``, and it ends with ``exit_code``.
      ``gpu``: it needs one, and says so where there is none.  ``needs_compiler``: what it
      holds is read from compiled code.
    - A ``schedule``, or a ``file`` that is one: it compiles, and the emitted text has what it
      ``holds``.  ``refused``: it does not, and the error has that.
    - Both: the command is run where the schedule is ``my.sched``; ``beside`` is the name of an
      example that is there, too.
    - A ``file`` that is a program: it runs, checks its result, prints what it ``holds`` and ends
      with exit code 0.
    - A ``page`` of this site, perhaps with an anchor: its text has what it ``shows``.

    ``status``: "here" as the document has it, or "different"; then the ``note`` says why.
    """

    document: str
    kind: str
    what: str
    file: str = ""
    command: str = ""
    schedule: str = ""
    page: str = ""
    holds: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    gpu: bool = False
    refused: bool = False
    exit_code: int = 0
    needs_compiler: bool = False
    status: Status = "here"
    note: str = ""
    beside: str = ""

    def files(self) -> commands.Files:
        """The files of the folder in which the command is run; none: the repository's root."""
        if not (self.command and self.schedule):
            return ()
        found = {MINE: f"{self.schedule.strip()}\n"}
        if self.beside:
            found[f"{stem(self.beside)}.sched"] = schedules.text(self.beside)
        return tuple(found.items())

    def exists(self) -> bool:
        """Whether the counterpart exists, without running it."""
        if self.file:
            return (ROOT / self.file).is_file()
        if self.command:
            return commands.exists(self.command)
        if self.schedule:
            return (emitted(self.schedule) is None) == self.refused
        return bool(self.page) and (ROOT / "docs" / self.page.partition("#")[0]).is_file()

    def where(self) -> str:
        """The link to it, as Markdown."""
        assert self.exists(), f"{self.document}, {self.what}: not here"
        if self.page:
            path, _, anchor = self.page.partition("#")
            name = path.rpartition("/")[2].replace(".md", "")
            return f"[{name}{anchor and ': '}{anchor.replace('-', ' ')}]({self.page})"
        if self.files():
            written = " ".join(f"{code(x)}<br>" for x in self.schedule.strip().splitlines())
            return f"{code(self.command)}<br>with {code(MINE)}:<br>{written.removesuffix('<br>')}"
        return "<br>".join(
            code(x) for x in (self.file or self.command or self.schedule).splitlines()
        )


def emitted(text: str) -> str | None:
    """The emitted text of a schedule, or None if this version refuses it."""
    try:
        return compile_source(Source(text, MINE)).text
    except ScheduleError:
        return None


def refusal(text: str) -> str:
    """Why this version refuses a schedule."""
    try:
        compile_source(Source(text, MINE))
    except ScheduleError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Document:
    """A document: its number and its description."""

    key: str
    title: str
    about: str


def read() -> tuple[tuple[Document, ...], tuple[Row, ...]]:
    """The documents, and all their rows in order."""
    documents: list[Document] = []
    rows: list[Row] = []
    for path in sorted(FILES.glob("*.toml")):
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        key = path.stem.partition("_")[0]
        documents.append(Document(key, found["title"], found["about"]))
        rows += [_row(key, given) for given in found["row"]]
    return tuple(documents), tuple(rows)


def _row(document: str, given: dict[str, object]) -> Row:
    lists = {name: tuple(given.get(name, ())) for name in ("holds", "shows")}  # type: ignore[arg-type]
    return Row(document, **{**given, **lists})  # type: ignore[arg-type]


def tables() -> str:
    """A table for each document."""
    documents, rows = read()
    parts = [_counts(documents, rows)]
    for document in documents:
        lines = [
            (r.kind, cell(r.what), r.status, r.where(), r.note.replace("|", "&#124;"))
            for r in rows
            if r.document == document.key
        ]
        parts += [f"## {document.title}\n", f"{document.about}\n"]
        parts += [table(("", "in the document", "status", "where, or what shows it", ""), lines)]
    return "\n".join(parts)


def _counts(documents: tuple[Document, ...], rows: tuple[Row, ...]) -> str:
    """How many items each document has, by status."""
    found = Counter((row.document, row.status) for row in rows)
    lines = [
        (f"[{x.title}](#{anchor(x.title)})", *(str(found[x.key, status]) for status in STATUSES))
        for x in documents
    ]
    total = Counter(row.status for row in rows)
    lines.append(("all", *(f"**{total[status]}**" for status in STATUSES)))
    return table(("", *STATUSES), lines, right=(1, 2))


def anchor(title: str) -> str:
    """The anchor that MkDocs gives a heading."""
    kept = "".join(x for x in title.lower() if x.isalnum() or x in " -_")
    return "-".join(kept.split())
