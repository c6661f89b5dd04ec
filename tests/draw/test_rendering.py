"""Drawings as files: SVG that can be read by all, and text."""

from __future__ import annotations

from itertools import product
from xml.etree import ElementTree

import pytest
from chosen import with_every_word

from gemmgen.analyze.whole_tiles import staged_tiles
from gemmgen.base.errors import UsageError
from gemmgen.draw import palette
from gemmgen.draw.kinds import KINDS
from gemmgen.draw.marks import CONFLICT, A, Cell, Drawing, Label, Stroke, thread
from gemmgen.draw.svg import svg_of
from gemmgen.draw.terminal import text_of
from tests.cli.running import fresh
from tests.draw.reading import ALL, drawn, scene_of

SVG = "{http://www.w3.org/2000/svg}"
OF_SHARED_MEMORY = ("copies", "banks")
SOME = tuple(sorted({*with_every_word(ALL)[::2], "register_blocked", "split_k", "hopper/pingpong"}))
"""Every kind of drawing is tried on half of the examples that together have every word of the
language: all kinds of copies, multiplications, roles and types.  The site draws each one that a
page shows, and tests of their own compare what is drawn with the interpreter."""
SMALL = Drawing(
    "A < B",
    "Two cells & an arrow.",
    160,
    64,
    (
        Cell(0, 0, 48, 32, A, "a", 'about "a"', strong=True),
        Cell(48, 0, 48, 32, thread(9), "9"),
        Stroke(((8, 48), (80, 48)), CONFLICT, arrow=True),
        Label(88, 52, "<end>"),
    ),
)


@pytest.mark.by_default(
    "register_blocked-hierarchy",
    "register_blocked-banks",
    "register_blocked-timeline",
    "register_blocked-tiles",
    "register_blocked-fragments",
)
@pytest.mark.usefixtures("uncompiled")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "registers"])
@pytest.mark.parametrize("name", SOME)
def test_each_kind_is_drawn(name: str, kind: str) -> None:
    if kind in OF_SHARED_MEMORY and not staged_tiles(scene_of(name).kernel):
        with pytest.raises(UsageError, match="cache_shared stages tiles there"):
            drawn(name, kind)
        return
    if kind == "error" and scene_of(name).problem.accumulate != "f32":
        with pytest.raises(UsageError, match="the plot is of f32 accumulators"):
            drawn(name, kind)
        return
    drawing = drawn(name, kind)
    root = ElementTree.fromstring(svg_of(drawing))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    size = [float(x) for x in root.attrib["viewBox"].split()[2:]]
    assert size == [width, height] and width >= 96 and height >= 96
    title, desc, style = root.findtext(f"{SVG}title"), root.find(f"{SVG}desc"), f"{SVG}style"
    assert title == drawing.title and desc is not None and desc.text == drawing.description
    assert root.attrib["role"] == "img" and root.find(style) is not None
    assert not root.findall(f".//{SVG}script")
    for mark in drawing.marks:
        points = mark.points if isinstance(mark, Stroke) else ((mark.x, mark.y),)
        if isinstance(mark, Cell):
            points = (*points, (mark.x + mark.width, mark.y + mark.height))
        assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in points), mark
    assert text_of(drawing).isascii()
    assert drawing.description.endswith(".") and any(c.isdigit() for c in drawing.description)


@pytest.mark.proof
def test_the_same_drawing_is_the_same_file() -> None:
    assert svg_of(SMALL) == svg_of(SMALL)
    assert fresh("draw", "tiled", "--format", "svg").stdout.decode() == svg_of(
        drawn("tiled", "tiles")
    )


def test_ids_of_two_drawings_differ() -> None:
    found = [ElementTree.fromstring(svg_of(d)) for d in (SMALL, drawn("tiled", "tiles"))]
    ids = [e.attrib["id"] for root in found for e in root.iter() if "id" in e.attrib]
    assert len(ids) == len(set(ids)) == 4
    assert found[0].attrib["aria-labelledby"].split() == ids[:2]


def test_text_and_attributes_are_escaped() -> None:
    root = ElementTree.fromstring(svg_of(SMALL))
    assert [e.text for e in root.iter(f"{SVG}text")] == [
        "a",
        "9",
        "<end>",
        "A < B",
        "Two cells & an arrow.",
    ]


def test_rules_hold_for_drawings_alone() -> None:
    """A style sheet within an SVG that is inlined holds for the whole page."""
    style = ElementTree.fromstring(svg_of(SMALL)).findtext(f"{SVG}style")
    assert style is not None
    rules = style.replace("@media (prefers-color-scheme:dark){", "").replace("}}", "}").split("}")
    assert rules.pop() == "" and all(f"svg.{palette.ROOT} " in rule for rule in rules)
    assert '[data-md-color-scheme="slate"] svg.gemmgen-drawing rect.A{' in style


def test_a_drawing_as_text() -> None:
    assert text_of(SMALL).splitlines() == [
        "A < B",
        "",
        "+=====+-----+",
        "#  a  |  9  |",
        "+=====+-----+",
        " --------->" + "<end>",
        "",
        "Two cells & an arrow.",
    ]


def luminance(color: str) -> float:
    """WCAG 2.2: relative luminance."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_read_on_every_fill(theme: str) -> None:
    fills = [palette.BACKGROUND, *palette.FILLS.values(), *palette.STRONG.values()]
    for fill in fills:
        assert contrast(getattr(palette.TEXT, theme), getattr(fill, theme)) >= 4.5, fill
    quiet = palette.QUIET, palette.BACKGROUND
    assert contrast(*(getattr(pair, theme) for pair in quiet)) >= 4.5
    lines = [palette.EDGE, *palette.LINES.values()]
    for line, back in product(lines, [palette.BACKGROUND]):
        assert contrast(getattr(line, theme), getattr(back, theme)) >= 3, line


def test_a_cell_of_less_than_a_character_hides_no_text() -> None:
    text = text_of(drawn("naive", "tiles"))
    assert "block 5" in text and "*" in text
