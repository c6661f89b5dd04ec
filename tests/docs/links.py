"""The links of a built site: where they lead, and what a page loads from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class PageParts(HTMLParser):
    """What a page links to, what it loads, and the anchors that it has."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe") and "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") != "canonical" and "href" in given:
            self.loads.append(given["href"])


def pages(site: Path) -> dict[Path, PageParts]:
    """Every page of ``site``; the one for addresses that do not exist has its own kind of links."""
    found: dict[Path, PageParts] = {}
    for path in sorted(site.rglob("*.html")):
        if path.name != "404.html":
            found[path] = PageParts()
            found[path].feed(path.read_text(encoding="utf-8"))
    return found


def dead(site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere, and files that are not there."""
    known = pages(site)
    for path, parts in known.items():
        here = path.relative_to(site)
        for link in (*parts.links, *parts.loads):
            split = urlsplit(link)
            if split.scheme or split.netloc:
                continue
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{here}: {link}"
            elif split.fragment and target in known:
                there = known[target].anchors
                yield from () if unquote(split.fragment) in there else (f"{here}: {link}",)


def elsewhere(site: Path) -> Iterator[str]:
    """Scripts, styles, fonts and pictures that a page would fetch from another host."""
    for path, parts in pages(site).items():
        for link in parts.loads:
            if urlsplit(link).netloc:
                yield f"{path.relative_to(site)}: {link}"
