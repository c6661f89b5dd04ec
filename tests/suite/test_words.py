"""Words that the field's own have replaced do not come back.

Names and prose of ``gemmgen/`` with its templates, the emitted texts of ``tests/golden``, and the
English pages are read as words: ``way_out``, ``WayOut`` and "way out" are the same two.  Left out
are decision records, the changelog, and ``gemmgen/explore``, which is being rebuilt.
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
    "seldom": "rarely",
    "shall": "must",
    "slab": "atom column (of a swizzle)",
    "slabs": "atom columns (of a swizzle)",
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

_ELSEWHERE = "other meanings of the word"
_ENGLISH = "ordinary English there"
LEFT: dict[str, dict[str, tuple[int, str]]] = {
    "code": {
        "by parts": (1, "gemmgen/functions"),
        "floats of": (2, "gemmgen/torch and gemmgen/gpu/compare.py"),
        "folds": (3, "gemmgen/gpu/compare.py"),
        "integers of": (6, "integers of so many bits"),
        "meets": (9, _ELSEWHERE),
        "slab": (8, "emitted names, which goldens keep"),
        "slabs": (1, _ELSEWHERE),
        "stands": (1, "gemmgen/torch"),
        "sum registers": (4, _ELSEWHERE),
        "sums": (150, "sums of numbers, as partial sums, in numerics and proof; emitted names"),
        "told": (5, "gemmgen/torch"),
        "turned": (18, "emitted names, which goldens keep"),
        "what it computes": (1, _ELSEWHERE),
    },
    "emitted": {
        "slab": (91, "names, which users' goldens keep"),
        "sums": (48, "partial sums, and a parameter's name"),
        "turned": (16, "names, which users' goldens keep"),
    },
    "pages": {
        "anew": (3, _ENGLISH),
        "behind": (7, _ENGLISH),
        "brings": (5, _ENGLISH),
        "copy engine": (25, "pages of docs/beyond"),
        "floats of": (3, "docs/beyond/types.md, and names of files"),
        "integers of": (1, "a name of a file"),
        "kernel in front": (1, "docs/beyond"),
        "likewise": (2, _ENGLISH),
        "meets": (2, _ENGLISH),
        "nobody": (3, _ENGLISH),
        "of the better": (1, "docs/beyond"),
        "seldom": (1, _ENGLISH),
        "shall": (1, _ENGLISH),
        "slabs": (2, "docs/beyond"),
        "stands": (2, _ENGLISH),
        "sums": (58, "sums of numbers, and pages that are being rewritten"),
        "take turns": (1, "docs/beyond"),
        "told": (2, _ENGLISH),
        "turned": (12, "names in emitted texts, and pages that are being rewritten"),
        "way out": (2, "a way out of a mistake"),
    },
}
"""How often words still occur, and why.  Lower a number when you replace one; never raise it."""


def _files(kind: str) -> Iterator[Path]:
    if kind == "code":
        yield from (p for s in ("py", "j2", "cuh", "cpp", "h", "lark") for p in _in("gemmgen", s))
    elif kind == "emitted":
        yield from _in("tests/golden", "cu")
    else:
        yield from ROOT.glob("*.md")
        yield from _in("docs", "md")


def _in(folder: str, suffix: str) -> Iterator[Path]:
    kept = {ROOT / "docs" / "adr", ROOT / "docs" / "zh", ROOT / "gemmgen" / "explore"}
    return (p for p in (ROOT / folder).rglob(f"*.{suffix}") if kept.isdisjoint(p.parents))


@cache
def _words(kind: str) -> str:
    """The words of all files of a kind, each with a space before and after it."""
    texts = (p.read_text(encoding="utf-8") for p in _files(kind) if p.name != "CHANGELOG.md")
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
