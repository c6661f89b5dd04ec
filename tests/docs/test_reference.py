"""The language's reference has every directive and every option, and the changelog names them."""

from __future__ import annotations

import re

import pytest
from gemmgen_docs import documents, language, pages

from gemmgen.ir.target import TARGETS
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.ladder import LADDER
from gemmgen.schedule.words import QUANTITIES

SPECS = {rung.SPEC.name: rung.SPEC for rung in (*LADDER, FuseEpilogue)}
COMBINATIONS = language.read_combinations()


def section(name: str) -> str:
    """A directive's part of the page."""
    _, _, rest = pages.render("{{ directives() }}").partition(f"## {name}\n")
    return rest.partition("\n## ")[0]


@pytest.mark.parametrize("name", SPECS)
def test_a_directive_is_documented_with_every_option(name: str) -> None:
    text, spec = section(name), SPECS[name]
    for argument in spec.arguments:
        letter = language._letter(argument.name)
        assert f"| `{letter}` |" in text, letter
        for choice in argument.choices:
            assert f"`{language._letter(choice)}`" in text, choice
        if argument.kind != "word":
            assert f"{argument.minimum} to {argument.maximum}" in text, letter
    for role in spec.operands:
        assert f"`{language.ROLES[role]}`" in text, role
    for role, hops in spec.hops:
        for hop in hops:
            assert f"`{language.ROLES[role]}.{hop}`" in text, hop
    assert "```diff" in text and "```sched" in text


def test_there_are_sections_for_the_directives_alone() -> None:
    found = re.findall(r"^## (\w+)$", pages.render("{{ directives() }}"), re.M)
    assert found == list(SPECS)


@pytest.mark.parametrize("name", SPECS)
def test_combinations_have_each_directive_taken_and_refused(name: str) -> None:
    said = {one.accepted for one in COMBINATIONS if name in one.schedule.split()}
    assert said == {True, False}


def test_files_of_combinations_are_of_directives() -> None:
    files = {path.stem for path in (language.DATA / "combinations").iterdir()}
    assert files <= SPECS.keys()


def test_no_rule_is_given_twice() -> None:
    rules = [one.rule for one in COMBINATIONS]
    assert len(set(rules)) == len(rules)


def test_the_page_of_the_language_has_targets_and_quantities() -> None:
    text = pages.render((documents.ROOT / "docs/language/index.md").read_text(encoding="utf-8"))
    for name in (*TARGETS, *QUANTITIES):
        assert f"`{name}`" in text, name


def test_the_changelog_and_the_page_on_the_language_name_every_directive() -> None:
    for file in ("CHANGELOG.md", "docs/language/index.md"):
        text = (documents.ROOT / file).read_text(encoding="utf-8")
        for name in SPECS:
            assert re.search(rf"`{name}[` ]", text), f"{file}: {name}"


GLOSSARY = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (documents.ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| English", "| ---"))
]


def test_a_word_of_the_glossary_is_in_both_languages_and_is_there_once() -> None:
    words = [english for english, _, _ in GLOSSARY]
    assert len(set(words)) == len(words) > 70
    for english, chinese, meaning in GLOSSARY:
        assert english.isascii() and meaning, english
        assert re.search(r"[\u4e00-\u9fff]", chinese), english


@pytest.mark.parametrize(
    "word",
    [
        "cp.async",
        "asynchronous copy",
        "stage",
        "split-K",
        "tensor core",
        "WMMA",
        "swizzle",
        "warp shuffle",
        "batched GEMM",
        "wave quantization",
        "index notation",
        "raster",
        "tuning",
        "search space",
        "launch bounds",
        *("TMA", "tensor map", "mbarrier", "named barrier", "warp role", "producer", "consumer"),
        *("ping-pong", "cooperative", "accumulator", "promotion", "PDL", "warpgroup", "wgmma"),
        *(
            "matrix descriptor, descriptor",
            "swizzle atom",
            "fragment layout",
            "epilogue store",
            "K-major, MN-major",
            "FP8",
            "INT8",
            "bf16x3",
        ),
        *("pipeline", "pre-pass", "K slice", "instruction tile", "operand plane", "atom column"),
    ],
)
def test_the_glossary_has_a_word_of_each_part(word: str) -> None:
    assert word in [english for english, _, _ in GLOSSARY]
