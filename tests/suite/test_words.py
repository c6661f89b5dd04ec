"""Words that the field's own have replaced do not come back.

Names and prose of ``gemmgen/`` with its templates, the emitted texts of ``tests/golden``, the
English pages with their data and notebooks, the examples and the tests are read as words:
``way_out``, ``WayOut`` and "way out" are the same two.  Decision records and the changelog say what
was written then, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

REPLACED = {
    "anew": "again",
    "as they lie": "as stored",
    "behind": "after",
    "behind tiles": "epilogue drain",
    "brings": "loads",
    "by products of parts": "from bf16 products (bf16x3)",
    "by parts": "split bf16",
    "copy engine": "TMA",
    "duties": "warp roles",
    "duty": "warp role",
    "engine swizzle": "TMA swizzle",
    "floats of": "FP8",
    "fold of": "promotion of",
    "folds": "promotes",
    "hand on": "release",
    "handed on": "released",
    "integers of": "INT8",
    "juts": "is an edge tile",
    "kernel behind": "dependent kernel",
    "kernel in front": "preceding kernel, or pre-pass",
    "likewise": "the same",
    "meeting": "barrier",
    "meets": "satisfies",
    "nobody": "no thread",
    "of the better": "of the best of",
    "products of parts": "products of terms",
    "seldom": "rarely",
    "shall": "must",
    "slab": "atom column (of a swizzle)",
    "slabs": "atom columns (of a swizzle)",
    "so many": "this many, or the number's name",
    "somebody": "a thread",
    "stands": "is",
    "sum registers": "accumulators",
    "sums": "accumulators",
    "take turns": "alternate (ping-pong)",
    "told": "reported",
    "turned": "transposed, or MN-major",
    "way out": "epilogue store",
    "what it computes": "formula comment",
    "whom": "which thread",
    "without seldom": "drop rare paths",
}
"""Each word, and what is written in its place."""

_SUMS = "sums of numbers, such as partial sums; what accumulators hold is called so"
LEFT: dict[str, dict[str, tuple[int, str]]] = {
    "code": {
        "by parts": (1, "subexpressions replaced by ``parts``"),
        "integers of": (6, "integers of a number of bits, and a function's name"),
        "products of parts": (1, "``products_of(parts)``"),
        "sum registers": (4, "``sum(registers_of(x) for x in y)``"),
        "sums": (128, _SUMS),
    },
    "emitted": {"sums": (6, _SUMS)},
    "pages": {
        "copy engine": (6, "names of decision records, whose addresses stay"),
        "slabs": (1, "the name of a decision record"),
        "sums": (24, _SUMS),
    },
    "examples": {"sums": (6, _SUMS)},
    "data": {"fold of": (1, "``functools.reduce`` of the playground's arrays"), "sums": (2, _SUMS)},
    "tests": {
        "integers of": (1, "integers of 16 bits"),
        "products of parts": (3, "``products_of(PARTS)``"),
        "sums": (181, _SUMS),
    },
}
"""How often words still occur, and why.  Lower a number when you replace one; never raise it."""

SUFFIXES = {
    "code": ("py", "j2", "cuh", "cpp", "h", "lark"),
    "emitted": ("cu",),
    "pages": ("md", "txt", "ipynb"),
    "examples": ("md", "sched", "py"),
    "data": ("py", "toml", "js"),
    "tests": ("py", "case", "txt", "sched"),
}
FOLDERS = {"code": "gemmgen", "emitted": "tests/golden", "pages": "docs", "data": "docs"}
KEPT = (ROOT / "docs" / "adr", ROOT / "docs" / "zh", ROOT / "docs" / "data" / "chinese.toml")
"""Decision records, which say what was known then, and Chinese pages with their table."""
OWN = {"CHANGELOG.md", "test_words.py"}


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
    return f" {' '.join(WORD.findall(' '.join(texts)))} ".lower()


def occurrences(words: str, word: str) -> int:
    return words.count(f" {word} ")


@pytest.mark.parametrize("kind", LEFT)
def test_replaced_words_do_not_come_back(kind: str) -> None:
    words, left = _words(kind), LEFT[kind]
    more = [
        f"{word}: {found} times, {allowed} at most; write {instead}"
        for word, instead in REPLACED.items()
        if (found := occurrences(words, word)) > (allowed := left.get(word, (0, ""))[0])
    ]
    assert not more, "\n".join(more)


def test_each_allowance_is_of_a_replaced_word_and_has_a_reason() -> None:
    for left in LEFT.values():
        assert left.keys() <= REPLACED.keys()
        assert all(number > 0 and reason for number, reason in left.values())


@pytest.mark.parametrize("text", ["way_out(kernel)", "class WayOut:", "# The way out.", "WAY_OUT"])
def test_a_word_is_found_in_names_and_prose(text: str) -> None:
    words = f" {' '.join(WORD.findall(text))} ".lower()
    assert occurrences(words, "way out") == 1
    assert occurrences(words, "out") == 1 and not occurrences(words, "ay out")
