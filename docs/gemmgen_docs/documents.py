"""The contents of the documents and their counterparts here, from ``data/documents.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source
from gemmgen_docs import commands
from gemmgen_docs.markdown import cell, code, table

ROOT = Path(__file__).parents[2]
ROWS = Path(__file__).parents[1] / "data" / "documents.toml"


@dataclass(frozen=True)
class Row:
    """One item of a document.

    Its counterpart is a ``file`` of the repository, a ``command`` whose output has what it
    ``holds``, a ``schedule`` that compiles or a ``page`` of this site.  ``gpu``: the command needs
    one.  ``refused``: the file is a schedule that is wrong on purpose.  ``needs_compiler``: the
    command's output depends on compiled code.
    """

    document: str
    kind: str
    what: str
    file: str = ""
    command: str = ""
    schedule: str = ""
    page: str = ""
    holds: tuple[str, ...] = ()
    gpu: bool = False
    refused: bool = False
    needs_compiler: bool = False
    note: str = ""

    def exists(self) -> bool:
        """Whether the counterpart exists, without running it."""
        if self.file:
            return (ROOT / self.file).is_file()
        if self.command:
            return commands.exists(self.command)
        if self.schedule:
            return compiles(self.schedule)
        return bool(self.page) and (ROOT / "docs" / self.page.partition("#")[0]).is_file()

    def where(self) -> str:
        """The link to it, as Markdown."""
        assert self.exists(), f"{self.document}, {self.what}: not here"
        if self.page:
            path, _, anchor = self.page.partition("#")
            name = path.rpartition("/")[2].replace(".md", "")
            return f"[{name}{anchor and ': '}{anchor.replace('-', ' ')}]({self.page})"
        return "<br>".join(
            code(x) for x in (self.file or self.command or self.schedule).splitlines()
        )


def compiles(text: str) -> bool:
    """Whether ``text`` is a schedule of this version."""
    try:
        compile_source(Source(text, "my.sched"))
    except ScheduleError:
        return False
    return True


@dataclass(frozen=True)
class Document:
    """A document: its number and its description."""

    key: str
    title: str
    about: str


def read() -> tuple[tuple[Document, ...], tuple[Row, ...]]:
    """The documents, and all their rows in order."""
    found = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    documents = tuple(Document(**given) for given in found["document"])
    rows = ({**given, "holds": tuple(given.get("holds", ()))} for given in found["row"])
    return documents, tuple(Row(**given) for given in rows)


def tables() -> str:
    """A table for each document."""
    documents, rows = read()
    by_key = {key: list(group) for key, group in groupby(rows, lambda row: row.document)}
    parts: list[str] = []
    for document in documents:
        lines = [(r.kind, cell(r.what), r.where(), cell(r.note)) for r in by_key[document.key]]
        parts += [f"## {document.key}: {document.title}\n", f"{document.about}\n"]
        parts += [table(("", "in the document", "here", ""), lines)]
    return "\n".join(parts)
