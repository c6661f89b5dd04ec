"""Pages made from files that are kept for other readers: decision records, texts at the root."""

from __future__ import annotations

import re

from gemmgen_docs import summary
from gemmgen_docs.commands import ROOT
from gemmgen_docs.markdown import table

CALL = "decisions()"
_LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)]+)\)")


def decisions() -> str:
    """A table of the decision records by their numbers."""
    rows: list[tuple[str, str]] = []
    for path in sorted((ROOT / "docs" / "adr").glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        number, _, rest = title.partition(". ")
        rows.append((number, f"[{rest or title}](adr/{path.name})"))
    return table(("", "decision"), rows, right=(0,))


def root_page(name: str) -> str:
    """A Markdown file at the root of the repository as a page: links into ``docs/`` stay links,
    others are the names of their files."""

    def moved(found: re.Match[str]) -> str:
        words, target = found.groups()
        if target.startswith("docs/") and target.partition("#")[0].endswith(".md"):
            return f"[{words}]({target.removeprefix('docs/')})"
        return f"{words} (`{target}`)"

    return _LINK.sub(moved, (ROOT / name).read_text(encoding="utf-8"))


def speeds() -> str:
    """README's table of measured speeds."""
    sizes = (f"{size}³" for size in summary.SIZES)
    header = ("A and B", *sizes, f"TFLOP/s, {summary.SIZES[-1]}³", "compared with")
    return table(header, list(summary.rows()), right=range(1, 4))
