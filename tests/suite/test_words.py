"""Words that the field's own have replaced do not come back.

Decision 83 lists them, with what is written instead, and argues each place where one may still
occur; this test reads both tables.  Names and prose of ``gemmgen/`` with its templates, the emitted
texts of ``tests/golden``, the English pages with their data and notebooks, the examples and the
tests are read as words: ``way_out``, ``WayOut`` and "way out" are the same two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
(RECORD,) = (ROOT / "docs" / "adr").glob("*-words-that-are-replaced.md")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
QUANTITIES = (
    "all",
    "any",
    "both",
    "each",
    "first",
    "last",
    "many",
    "most",
    "none",
    "number",
    "one",
    "several",
    "some",
    "three",
    "two",
)
"""Before "of which" they make plain English: "each of which"."""

SUFFIXES = {
    "code": ("py", "j2", "cuh", "cpp", "h", "lark"),
    "emitted": ("cu",),
    "pages": ("md", "txt", "ipynb"),
    "examples": ("md", "sched", "py"),
    "data": ("py", "toml", "js"),
    "tests": ("py", "case", "txt", "sched"),
}
FOLDERS = {"code": "gemmgen", "emitted": "tests/golden", "pages": "docs", "data": "docs"}
KEPT = (ROOT / "docs" / "zh", ROOT / "docs" / "data" / "chinese.toml")
"""Chinese pages and their table, whose keys are English captions of other files."""
OWN = {RECORD.name, "test_words.py"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the record's table under ``heading``, without its head."""
    text = RECORD.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


REPLACED = {word: instead for word, instead, *_ in rows("The words")}
"""Each word, and what is written in its place."""
LEFT = {(where, word): int(times) for where, word, times, _ in rows("Where old words stay")}
"""How often words may still occur.  Lower a number when you replace one; do not raise it."""


def _files(kind: str) -> Iterator[Path]:
    folder = ROOT / FOLDERS.get(kind, kind)
    found = (p for suffix in SUFFIXES[kind] for p in folder.rglob(f"*.{suffix}"))
    yield from (p for p in found if not any(kept in (p, *p.parents) for kept in KEPT))
    if kind == "pages":
        yield from ROOT.glob("*.md")
        yield from (ROOT / "examples" / "notebooks").glob("*.ipynb")


@cache
def _words(kind: str) -> str:
    """The words of all files of a kind, each with a space before and after it."""
    texts = (p.read_text(encoding="utf-8") for p in _files(kind) if p.name not in OWN)
    return read_as_words(" ".join(texts))


def read_as_words(text: str) -> str:
    return f" {' '.join(WORD.findall(text))} ".lower()


def occurrences(words: str, word: str) -> int:
    plain = sum(words.count(f" {one} of which ") for one in QUANTITIES) if word == "of which" else 0
    return words.count(f" {word} ") - plain


@pytest.mark.parametrize("kind", SUFFIXES)
def test_replaced_words_do_not_come_back(kind: str) -> None:
    words = _words(kind)
    assert len(words) > 10_000
    more = [
        f"{word}: {found} times, {allowed} at most; write {instead}"
        for word, instead in REPLACED.items()
        if (found := occurrences(words, word)) > (allowed := LEFT.get((kind, word), 0))
    ]
    assert not more, "\n".join(more)


def test_the_record_argues_each_allowance() -> None:
    assert len(REPLACED) >= 25
    for where, word, times, reason in rows("Where old words stay"):
        assert where in SUFFIXES and word in REPLACED and int(times) > 0
        assert len(reason.split()) >= 3, f"{where}, {word}: {reason}"


@pytest.mark.parametrize("text", ["way_out(kernel)", "class WayOut:", "# The way out.", "WAY_OUT"])
def test_a_word_is_found_in_names_and_prose(text: str) -> None:
    words = read_as_words(text)
    assert occurrences(words, "way out") == 1
    assert occurrences(words, "out") == 1 and not occurrences(words, "ay out")


def test_of_which_after_a_quantity_is_plain_english() -> None:
    words = read_as_words("blocks, each of which waits; operands of which bits are dropped")
    assert occurrences(words, "of which") == 1
