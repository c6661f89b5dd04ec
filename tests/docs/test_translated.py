"""A translated page says what the English one says, of the same figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gemmgen_docs import pages, translation
from gemmgen_docs.compared import RUNGS

DOCS = Path(__file__).parents[2] / "docs"
CALL = re.compile(r"\{\{.*?\}\}", re.DOTALL)
SLOT = re.compile(r"\{(\w+)(?::said)?\}")
TRANSLATED = [
    (lang, path.relative_to(DOCS / lang).as_posix())
    for lang in translation.FILES
    for path in sorted((DOCS / lang).rglob("*.md"))
]


def calls(page: Path) -> list[str]:
    return [" ".join(call.split()) for call in CALL.findall(page.read_text(encoding="utf-8"))]


def places(page: Path) -> list[str]:
    """The anchors that a page gives its headings."""
    return re.findall(r"\{ *#([\w-]+) *\}", page.read_text(encoding="utf-8"))


def test_the_ladder_is_there_in_chinese() -> None:
    assert {path for lang, path in TRANSLATED if lang == "zh"} == {
        f"ladder/{name}.md" for name in ("index", *RUNGS)
    }


@pytest.mark.parametrize(("lang", "path"), TRANSLATED)
def test_both_versions_have_the_same_generated_parts_in_the_same_order(
    lang: str, path: str
) -> None:
    english, other = DOCS / path, DOCS / lang / path
    assert calls(other) == calls(english) != []
    assert places(other) == places(english)


@pytest.mark.parametrize(("lang", "path"), TRANSLATED)
def test_both_versions_have_as_many_headings_items_and_code_spans(lang: str, path: str) -> None:
    shapes = []
    for page in (DOCS / path, DOCS / lang / path):
        prose = CALL.sub("", page.read_text(encoding="utf-8"))
        shapes.append(
            (
                re.findall(r"^(#+|-|\d+\.|\?\?\?) ", prose, re.MULTILINE),
                sorted(re.findall(r"`[^`]+`", prose)),
            )
        )
    assert shapes[0] == shapes[1]


@pytest.mark.proof
@pytest.mark.parametrize(("lang", "path"), TRANSLATED)
def test_each_version_links_to_the_other_and_says_its_language(
    lang: str, path: str, site: Path
) -> None:
    page = path.removesuffix(".md").removesuffix("index")
    english = (site / page / "index.html").read_text(encoding="utf-8")
    other = (site / lang / page / "index.html").read_text(encoding="utf-8")
    assert f'<html lang="{lang}"' in other and '<html lang="en"' in english
    back = "../" * len(page.rstrip("/").split("/"))
    assert re.search(rf'href="{back}{lang}/{page}/?" hreflang="{lang}"', english)
    assert re.search(rf'href="{back}../{page}/?" hreflang="en"', other)


def test_a_row_of_the_table_keeps_what_its_text_has() -> None:
    for english, other in translation.table("zh").items():
        kept = sorted(SLOT.findall(english))
        assert kept == sorted({*SLOT.findall(other)}) and len(kept) == len({*kept}), english


def test_what_the_table_lacks_is_an_error() -> None:
    with pytest.raises(LookupError, match="no translation of 'No such heading'"):
        translation.said("No such heading", "zh")
    with pytest.raises(LookupError, match="no such sentence"):
        translation.sentences("Columns are banks, no such sentence.", "zh")


def test_a_function_that_knows_no_chinese_is_not_for_chinese_pages() -> None:
    with pytest.raises(Exception, match="'passes' is undefined"):
        pages.render("{{ passes() }}", "zh")


def test_names_numbers_and_code_are_the_same() -> None:
    for text in ("TFLOP/s", "`pad A by=1`", "A_shared[k, m]", "m 0..7"):
        assert translation.said(text, "zh") == text


def test_a_slot_may_be_translated_too() -> None:
    said = translation.said("without pad and swizzle: 32-way conflict", "zh")
    assert said == "不加填充和地址重排\uff1a32 路冲突"


def test_chinese_lines_are_joined_without_a_space() -> None:
    assert translation.joined("一行\n二行 warp\n三行\n\n- 四\n  五\n", "zh") == (
        "一行二行 warp\n三行\n\n- 四五\n"
    )


DRAWN = sorted(
    {
        call
        for path in (DOCS / "zh").rglob("*.md")
        for call in calls(path)
        if call.startswith("{{ drawing(")
    }
)


@pytest.mark.by_default("*naive tiled?, ?hierarchy*")
@pytest.mark.parametrize("call", DRAWN)
def test_every_word_of_a_drawing_has_a_translation(call: str) -> None:
    if '"registers"' in call:
        pytest.importorskip("cuda.bindings", reason="machine code is read from a compiled kernel")
    assert "<svg " in pages.render(call, "zh")
