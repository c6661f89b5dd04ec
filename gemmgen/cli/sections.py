"""Sections of a report: rich tables on a terminal, aligned plain text elsewhere."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable

from gemmgen.analyze.report import Section
from gemmgen.cli.files import put

NUMBER = re.compile(r"[\d,.]+( ?[%\w/]+)?|-")
RULES = 3
"""Characters that a table takes beside each column, at the most."""


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


def plain(section: Section) -> str:
    """Columns aligned, numbers to the right."""
    table = [row for row in (section.header, *section.rows) if row]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))] if table else []
    right = [_is_numeric(section, i) for i in range(len(widths))]
    lines = [section.title]
    for row in table:
        cells = (
            f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(row, widths, right, strict=True)
        )
        lines.append(("  " + "  ".join(cells)).rstrip())
    lines += [f"  ({note})" for note in section.notes]
    return "\n".join(lines) + "\n"


def _is_numeric(section: Section, column: int) -> bool:
    """Whether a column has numbers; the first one has names."""
    cells = [row[column] for row in section.rows if row[column]]
    return bool(column and section.header and cells) and all(map(NUMBER.fullmatch, cells))


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
            Text(name), justify="right" if _is_numeric(section, i) else "left", no_wrap=True
        )
    for row in section.rows:
        table.add_row(*map(Text, row))
    Console().print(table)
