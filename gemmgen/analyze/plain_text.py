"""Sections of a report as aligned plain text."""

from __future__ import annotations

import re

from gemmgen.analyze.section import Section

NUMBER = re.compile(r"[\d,.]+( ?[%\w/]+)?|-")


def plain(section: Section) -> str:
    """Columns aligned, numbers to the right."""
    table = [row for row in (section.header, *section.rows) if row]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))] if table else []
    right = [is_numeric(section, i) for i in range(len(widths))]
    lines = [section.title]
    for row in table:
        cells = (
            f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(row, widths, right, strict=True)
        )
        lines.append(("  " + "  ".join(cells)).rstrip())
    lines += [f"  ({note})" for note in section.notes]
    return "\n".join(lines) + "\n"


def is_numeric(section: Section, column: int) -> bool:
    """Whether a column has numbers; the first one has names."""
    cells = [row[column] for row in section.rows if row[column]]
    return bool(column and section.header and cells) and all(map(NUMBER.fullmatch, cells))
