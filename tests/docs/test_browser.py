"""A headless browser finds nothing wrong with the site, and finds what is wrong with another."""

from __future__ import annotations

from pathlib import Path

import browse
import pytest

LACKING = browse.missing()
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")

HEAD = '<!doctype html><title>t</title><link rel="icon" href="data:,">'
PICTURE = """
<style>.background {fill: #fff}
@media (prefers-color-scheme: dark) {.background {fill: #123}}</style>
<svg width="9" height="9"><title>a</title><rect class="background"/><text>a</text></svg>
"""
PLANTED = {
    "console": ('<script>console.error("planted")</script>', 'console: .*"planted"'),
    "exception": ('<script>throw new Error("planted")</script>', "console: .*Error: planted"),
    "late exception": (
        '<script>setTimeout(() => { throw new Error("planted") }, 20)</script>',
        "console: .*Error: planted",
    ),
    "picture": ('<img src="none.png" alt="">', "404: .*/none.png"),
    "picture without a size": (
        '<svg width="0" height="9" role="img" aria-label="a"></svg>',
        r"a picture without a size: svg 1 \(light\)",
    ),
    "picture without words": (
        '<svg width="9" height="9"><text>a</text></svg>',
        r"a picture without an alternative text: svg 1 \(dark\)",
    ),
    "picture with empty words": (
        '<svg width="9" height="9" role="img" aria-labelledby="none"></svg>',
        "a picture without an alternative text",
    ),
    "cut off table": (
        '<div style="overflow: hidden; width: 300px"><table width="900"><td>a</table></div>',
        "at 390 px cut off: table 1",
    ),
    "page wider than a phone": (
        '<pre style="width: 800px">a</pre>',
        "at 390 px wider than the window, by ",
    ),
    "drawing that nothing enlarges": (
        '<figure><svg viewBox="0 0 900 9" width="90" height="9" aria-label="a"></svg></figure>',
        "at 1440 px smaller than it was drawn, and nothing enlarges it: svg 1",
    ),
    "drawing with small text": (
        '<figure><button>Enlarge</button><svg viewBox="0 0 900 90" width="450" height="45"'
        ' aria-label="a"><text y="20" style="font-size: 12px">a</text></svg></figure>',
        "at 1024 px text of 6.0 px: svg 1",
    ),
    "one paper for both schemes": (
        '<svg width="9" height="9" aria-label="a"><rect class="background"/></svg>',
        "one background in both schemes: svg 1",
    ),
    "ink like paper": (
        '<svg width="9" height="9" aria-label="a"><rect class="background"/><text>a</text></svg>',
        r"text in the color of its background: svg 1 \(dark\)",
    ),
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


@pytest.mark.proof
def test_every_page_of_the_site_opens_without_an_error_and_every_link_leads_somewhere(
    site: Path,
) -> None:
    found, pages = browse.faults(site)
    assert found == []
    assert pages >= len([path for path in site.rglob("index.html")]) > 40


@pytest.mark.proof
def test_a_site_without_a_fault_has_none(tmp_path: Path) -> None:
    found, pages = browse.faults(site_with(tmp_path, f'<a href="other/#here">x</a>{PICTURE}'))
    assert (found, pages) == ([], 2)


@pytest.mark.proof
def test_a_page_that_begins_in_the_dark_scheme_has_no_fault(tmp_path: Path) -> None:
    """As a theme's page may that is opened after one in a dark scheme."""
    begins = (
        "<script>if (!sessionStorage.seen) { sessionStorage.seen = 1;"
        " document.querySelector('.background').style.fill = '#123' }</script>"
    )
    found, pages = browse.faults(site_with(tmp_path, PICTURE + begins))
    assert (found, pages) == ([], 2)


@pytest.mark.proof
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    body, wanted = PLANTED[name]
    found, _ = browse.faults(site_with(tmp_path, body))
    with pytest.raises(AssertionError, match=wanted):
        assert not found, "\n".join(found)
