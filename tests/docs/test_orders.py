"""The orders that are shown side by side, and what the page and the decision say of them."""

from __future__ import annotations

import re

from gemmgen_docs import documents, orders, pages

from gemmgen.language import VOCABULARY

DOCS = documents.ROOT / "docs"


def test_every_document_has_an_order_of_directives_that_there_are() -> None:
    keys = {document.key for document in documents.read()[0]} - {"expected"}
    assert set(orders.of_documents()) == keys
    for one in (*orders.of_documents().values(), orders.of_rungs()):
        assert set(one) <= set(orders.PASSES)
    assert set(orders.PASSES) <= set(VOCABULARY.statements)


def test_the_outlines_seven_directives_are_in_the_order_of_the_passes() -> None:
    assert len(orders.of_documents()["outline"]) == 7
    for key in ("000", "001", "002", "outline"):
        assert orders.inverted(orders.of_documents()[key]) == []
    assert orders.inverted(orders.of_documents()["003"]) == [("double_buffer", "pad")]


def test_the_rungs_are_in_the_order_of_the_document_with_levels() -> None:
    levels, rungs = orders.of_documents()["004"], orders.of_rungs()
    shared = [name for name in levels if name in rungs]
    assert [rungs[name] for name in shared] == sorted(rungs[name] for name in shared)


def test_the_decision_has_the_number_of_pairs_that_the_rungs_take_the_other_way() -> None:
    text = (DOCS / "adr" / "0035-the-order-of-passes.md").read_text(encoding="utf-8")
    said = re.search(r"of (\d+) pairs of directives (\d+) are the other way round", text)
    assert said is not None
    assert f"{said[2]} of {said[1]}" == orders.against(orders.of_rungs())


def test_no_page_says_that_the_rungs_are_in_the_order_of_the_passes() -> None:
    for page in DOCS.rglob("*.md"):
        assert "The order is that of the passes" not in page.read_text(encoding="utf-8"), page


def test_the_page_has_every_pass_in_its_order() -> None:
    text = pages.render((documents.ROOT / "docs/order.md").read_text(encoding="utf-8"))
    steps = text.partition("## The passes\n")[2].partition("\nThe outline has")[0]
    lines = re.findall(r"^\d\. [^:]*: ([^.;]*)", steps, re.MULTILINE)
    said = [name for line in lines for name in re.findall(r"`(\w+)`", line)]
    assert said == [*orders.PASSES[:-1], "fuse_epilogue"]
