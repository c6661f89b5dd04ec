"""A headless browser finds nothing wrong with the site, and finds what is wrong with another."""

from __future__ import annotations

from pathlib import Path

import browse
import pytest

LACKING = browse.missing()
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")

HEAD = '<!doctype html><title>t</title><link rel="icon" href="data:,">'
PLANTED = {
    "console": ('<script>console.error("planted")</script>', 'console: .*"planted"'),
    "exception": ('<script>throw new Error("planted")</script>', "console: .*Error: planted"),
    "late exception": (
        '<script>setTimeout(() => { throw new Error("planted") }, 20)</script>',
        "console: .*Error: planted",
    ),
    "picture": ('<img src="none.png" alt="">', "404: .*/none.png"),
    "script of another host": (
        '<script src="http://127.0.0.1:9/x.js"></script>',
        "net::ERR.*: http://127.0.0.1:9/x.js",
    ),
    "page": ('<a href="none/">x</a>', "404: .*/none/"),
    "anchor": ('<a href="other/#none">x</a>', "no such anchor: other/#none"),
    "own anchor": ('<a href="#none">x</a>', "no such anchor: #none"),
    "link that a script writes": (
        "<script>document.body.innerHTML = '<a href=\"none/\">x</a>'</script>",
        "404: .*/none/",
    ),
}


def site_with(folder: Path, body: str) -> Path:
    """Two pages, the second of them right, in the shape that MkDocs gives them."""
    (folder / "other").mkdir()
    (folder / "index.html").write_text(f'{HEAD}<body><h1 id="top">a</h1>{body}</body>')
    (folder / "other" / "index.html").write_text(f'{HEAD}<h1 id="here">b</h1><a href="../#top">')
    return folder


def test_every_page_of_the_site_opens_without_an_error_and_every_link_leads_somewhere(
    site: Path,
) -> None:
    found, pages = browse.faults(site)
    assert found == []
    assert pages >= len([path for path in site.rglob("index.html")]) > 40


def test_a_site_without_a_fault_has_none(tmp_path: Path) -> None:
    found, pages = browse.faults(site_with(tmp_path, '<a href="other/#here">x</a>'))
    assert (found, pages) == ([], 2)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    body, wanted = PLANTED[name]
    found, _ = browse.faults(site_with(tmp_path, body))
    with pytest.raises(AssertionError, match=wanted):
        assert not found, "\n".join(found)
