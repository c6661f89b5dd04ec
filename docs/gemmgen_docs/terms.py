"""Terms of the glossary: an anchor for each row, and a link where a page uses one first."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path

PAGE = "glossary.md"
GLOSSARY = Path(__file__).parents[1] / PAGE
_ORDINARY = "atomic box buffer chunk counter group guard intent order ordered origin pass phase "
_ORDINARY += "pipeline predicate race request round schedule slice spread tuning vector wave"
ORDINARY = frozenset(_ORDINARY.split())
"""Terms that are ordinary words too: a page that means the term links it itself."""
_SKIPPED = "a code pre h1 h2 h3 h4 h5 h6 svg script style th summary figcaption button textarea"
SKIPPED = frozenset(_SKIPPED.split())
"""Elements whose text has no links of terms."""
_ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| (.+) \|$", re.MULTILINE)
_CODE = re.compile(r"[`*]|\[([^]]*)\]\([^)]*\)")


@functools.cache
def rows() -> dict[str, str]:
    """The English terms with what they mean; the two of ``alpha, beta`` are two."""
    text = GLOSSARY.read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for names, _, meaning in _ROW.findall(text):
        if names in ("English", "---") or set(names) <= {"-"}:
            continue
        for name in names_of(names):
            found[name] = _CODE.sub(r"\1", meaning)
    return found


def names_of(cell: str) -> list[str]:
    """The terms of a row's first cell, without what it has in brackets; ``SM`` in
    ``multiprocessor (SM)`` is one too."""
    short = re.findall(r"\(([A-Z][A-Za-z]*)\)", cell)
    return [*(name.strip() for name in re.sub(r"\([^)]*\)", "", cell).split(",")), *short]


def anchor(name: str) -> str:
    """The anchor of a term's row."""
    return "term-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def anchored(markdown: str) -> str:
    """The glossary with an anchor for each term."""

    def with_anchors(found: re.Match[str]) -> str:
        if found[1] == "English" or set(found[1]) <= {"-"}:
            return found[0]
        marks = "".join(f'<a id="{anchor(name)}"></a>' for name in names_of(found[1]))
        return f"| {marks}{found[1]} | {found[2]} | {found[3]} |"

    return _ROW.sub(with_anchors, markdown)


@functools.cache
def _pattern() -> re.Pattern[str]:
    names = sorted((n for n in rows() if n not in ORDINARY), key=len, reverse=True)
    return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(_spelled, names))})(?![\w-])")


def _spelled(name: str) -> str:
    """A term as pages write it: at the beginning of a sentence, or in the plural."""
    first = f"[{name[0]}{name[0].upper()}]" if name[0].islower() else re.escape(name[0])
    plural = "s?" if name[-1].isalpha() and name[-1] != "s" else ""
    return first + re.escape(name[1:]) + plural


def _term(written: str) -> str:
    """The term that was written so."""
    lowered = written[0].lower() + written[1:]
    forms = (written, lowered, written[:-1], lowered[:-1])
    return next(form for form in forms if form in rows())


class _Linker(HTMLParser):
    """Copies a page's HTML and links the first use of each term in its running text."""

    def __init__(self, glossary: str):
        super().__init__(convert_charrefs=False)
        self.glossary = glossary
        self.parts: list[str] = []
        self.inside: list[str] = []
        self.linked: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")
        if tag in SKIPPED:
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.parts.append(data if self.inside else "".join(self._with_links(data)))

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")

    def _with_links(self, text: str) -> Iterator[str]:
        at = 0
        for found in _pattern().finditer(text):
            term = _term(found[0])
            meaning = rows()[term]
            if meaning in self.linked:
                continue
            self.linked.add(meaning)
            yield text[at : found.start()]
            yield (
                f'<a class="term" href="{self.glossary}#{anchor(term)}" '
                f'title="{escape(meaning, quote=True)}">{found[0]}</a>'
            )
            at = found.end()
        yield text[at:]


def with_links(html: str, glossary: str) -> str:
    """A page whose first use of each term leads to its row at the address ``glossary``."""
    linker = _Linker(glossary)
    linker.feed(html)
    linker.close()
    return "".join(linker.parts)
