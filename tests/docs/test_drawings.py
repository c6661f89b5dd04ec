"""Drawings in pages: one block of HTML, which Markdown leaves as it is."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gemmgen_docs import drawings
from gemmgen_docs.pages import render

DOCS = Path(__file__).parents[2] / "docs"
CALL = re.compile(r"\{\{ *(drawing\([^}]*\)) *\}\}")
CALLS = sorted({call for page in DOCS.rglob("*.md") for call in CALL.findall(page.read_text())})


@pytest.mark.by_default('*"warp_tiled", "threads"*', '*"padded double_buffered", "timeline"*')
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_a_figure_with_its_caption(call: str) -> None:
    block = render(f"{{{{ {call} }}}}")
    assert "\n\n" not in block
    figure = ElementTree.fromstring(block.strip())
    picture, caption = figure
    assert picture.attrib["role"] == "img"
    assert picture.attrib["class"] in ("gemmgen-drawing", "gemmgen-plot")
    described = picture.findtext("{http://www.w3.org/2000/svg}desc")
    assert caption.text is not None and described
    if len(described) <= drawings.LONGEST:
        assert caption.text.strip() == described
    else:
        assert len(caption.text) < 120 and caption.text.strip().endswith(".")


def test_ids_are_a_pages_own() -> None:
    found = [drawings.drawing("tiled", "tiles"), drawings.drawing("naive", "tiles")]
    ids = [name for text in found for name in re.findall(r' id="([^"]*)"', text)]
    assert len(set(ids)) == len(ids) == 4


def test_a_shape_may_be_given() -> None:
    assert "C is 64 x 96, cut into 6 tiles of 32 x 32" in drawings.drawing(
        "tiled", "tiles", 64, 96, 128
    )


@pytest.mark.proof
def test_measurements_are_drawn_as_far_as_there_are_any() -> None:
    figure = ElementTree.fromstring(drawings.plot("ladder.json").strip())
    assert "of cuBLAS" in (figure[0].findtext("{http://www.w3.org/2000/svg}desc") or "")
    assert drawings.plot("none.json") == ""
