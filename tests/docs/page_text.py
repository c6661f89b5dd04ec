"""A built page as its reader sees it: the text, with one space between words and cells, and at its
end the addresses that it links to on other hosts."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

APART = {"br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "li", "p", "pre"}
CELLS = {"td", "text", "th", "title", "tr"}
UNREAD = {"script", "style"}


class Reader(HTMLParser):
    """Collects the text of the article, if a page has one, and spaces between blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.links: list[str] = []
        self.unread = 0
        self.ended = False  # what follows the article is the theme's

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self.parts, self.links = [], []
        href = dict(attrs).get("href") or ""
        if tag == "a" and href.startswith("http") and not self.ended:
            self.links.append(href)
        self.unread += tag in UNREAD
        if tag in APART | CELLS:
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self.ended = True
        self.unread -= tag in UNREAD
        if tag in APART | CELLS:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self.unread and not self.ended:
            self.parts.append(data)


def words(text: str) -> str:
    """``text`` with one space wherever it has some."""
    return " ".join(text.split())


def of_html(html: str) -> str:
    """The text of a page."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    return words(" ".join(["".join(reader.parts), *reader.links]))


def of_page(site: Path, page: str) -> str:
    """The text of a page of ``site``, named by its source: ``ladder/tiled.md``."""
    return of_html(html_of(site, page))


def html_of(site: Path, page: str) -> str:
    """The built page, named by its source."""
    stem = page.removesuffix(".md").removesuffix("index").rstrip("/")
    return (site / stem / "index.html").read_text(encoding="utf-8")
