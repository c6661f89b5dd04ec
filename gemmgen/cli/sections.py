"""Prints sections of a report: rich tables on a terminal, aligned plain text elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable

from gemmgen.analyze.plain_text import is_numeric, plain
from gemmgen.analyze.section import Section
from gemmgen.cli.files import put

RULES = 3
"""The most characters that a table adds to each column."""


def show(sections: Iterable[Section]) -> None:
    """Prints ``sections`` on standard output; a table wider than the terminal is plain text."""
    texts: list[str] = []
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for section in sections:
        text = plain(section)
        if max(map(len, text.splitlines())) + RULES * len(section.header) < width:
            _rich(section)
        elif width:
            put(text + "\n")
        else:
            texts.append(text)
    put("\n".join(texts))


def _rich(section: Section) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(section.title, style="bold"),
        title_justify="left",
        caption=Text("\n".join(section.notes), style="dim"),
        caption_justify="left",
        show_header=bool(section.header),
        box=box.SIMPLE,
    )
    for i in range(len(section.rows[0]) if section.rows else 0):
        name = section.header[i] if section.header else ""
        table.add_column(
            Text(name), justify="right" if is_numeric(section, i) else "left", no_wrap=True
        )
    for row in section.rows:
        table.add_row(*map(Text, row))
    Console().print(table)
