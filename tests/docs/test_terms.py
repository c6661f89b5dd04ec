"""Terms lead to the glossary where a page uses them first, and what people search for is found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gemmgen_docs import terms

from gemmgen.ir.buffers import Role

DOCS = Path(__file__).parents[2] / "docs"
SEARCHED = (
    *("accumulator", "TMA", "ping-pong", "FP8", "PDL", "MN-major"),
    *("producer", "consumer", "warp role", "swizzle atom", "descriptor", "warpgroup"),
    *("wgmma", "promotion", "role of a buffer", "intent", "fragment", "staging slice"),
)
NOT_LINKED = ("glossary", "zh", "404.html", "playground")
"""Parts of the site whose pages do not link terms; the playground is a program."""
LINK = re.compile(r'<a class="term" href="g/#(term-[\w-]+)" title="[^"]+">([^<]+)</a>')


def linked(html: str) -> list[tuple[str, str]]:
    return LINK.findall(terms.with_links(html, "g/"))


@pytest.mark.parametrize("word", SEARCHED)
def test_a_word_that_people_search_for_is_an_entry_of_the_glossary(word: str) -> None:
    assert word in terms.rows()


def test_the_glossary_names_each_role_of_a_buffer() -> None:
    meaning = terms.rows()["role of a buffer"]
    assert [role.value for role in Role if not re.search(rf"\b{role.value}\b", meaning)] == []


@pytest.mark.proof
@pytest.mark.parametrize("word", SEARCHED)
def test_the_search_of_the_site_finds_it_as_a_title_or_an_entry(word: str, site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    titles = [doc["title"] for doc in index["docs"]]
    entries = next(doc["text"] for doc in index["docs"] if doc["location"] == "glossary/")
    assert any(word.lower() in title.lower() for title in titles) or word in entries


def unlinked(html: str) -> set[str]:
    """The terms that a page of the site uses in its text and links nowhere."""
    _, _, article = html.partition("<article")
    article = article.partition("</article>")[0]
    before = set(re.findall(r'href="[^"]*#(term-[\w-]+)"', article))
    again = set(re.findall(r'href="g/#(term-[\w-]+)"', terms.with_links(article, "g/")))
    meanings = {terms.anchor(name): meaning for name, meaning in terms.rows().items()}
    known = {meanings[one] for one in before}
    return {one for one in again if meanings[one] not in known}


@pytest.mark.proof
def test_each_page_of_the_site_links_the_terms_that_it_uses(site: Path) -> None:
    pages = [p for p in site.rglob("*.html") if p.relative_to(site).parts[0] not in NOT_LINKED]
    texts = {p: p.read_text(encoding="utf-8") for p in pages}
    assert sum('<a class="term"' in text for text in texts.values()) > 100
    found = {
        str(p.relative_to(site)): some for p, text in texts.items() if (some := unlinked(text))
    }
    assert not found


def test_a_page_that_links_no_term_would_be_found() -> None:
    assert unlinked("<article><p>A warp of TMA</p></article>") == {"term-warp", "term-tma"}
    linked_page = f"<article>{terms.with_links('<p>A warp, two warps.</p>', 'g/')}</article>"
    assert unlinked(linked_page) == set()


def test_the_first_use_is_linked_and_no_other() -> None:
    found = linked("<p>An accumulator, two accumulators.</p><p>Accumulators</p>")
    assert found == [("term-accumulator", "accumulator")]


def test_plurals_and_capitals_are_the_same_term() -> None:
    assert linked("<p>Warps wait.</p>") == [("term-warp", "Warps")]
    assert linked("<p>tma</p>") == []


def test_the_longest_term_is_taken() -> None:
    assert linked("<p>A bank conflict</p>") == [("term-bank-conflict", "bank conflict")]


@pytest.mark.parametrize("tag", ["code", "a", "h2", "pre", "svg", "th", "textarea"])
def test_nothing_is_linked_within(tag: str) -> None:
    html = f"<{tag}>TMA</{tag}><p>x</p>"
    assert terms.with_links(html, "g/") == html


def test_ordinary_words_are_left_alone() -> None:
    assert linked("<p>The tests pass in order, in a group.</p>") == []


def test_html_is_copied_as_it_is() -> None:
    html = '<p title="a &amp; b">x &lt; y<br/><!-- c --></p>\n<img src="a.png">'
    assert terms.with_links(html, "g/") == html


def test_every_row_has_an_anchor_and_every_anchor_is_one_rows() -> None:
    text = terms.anchored((DOCS / terms.PAGE).read_text(encoding="utf-8"))
    anchors = re.findall(r'<a id="(term-[^"]+)"></a>', text)
    assert anchors == [terms.anchor(name) for name in terms.rows()]
    assert len(set(anchors)) == len(anchors) > 100
