"""Smaller samples with every kind, for tests that repeat one check over many: examples that
together have every word of the schedule language that any has, and half of all storage orders."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cache

from gemmgen.schedule import examples

FREE = ("gemm", "kernel", "fuse_epilogue", "assume", "require")
"""Directives whose words are the user's own."""


def with_every_word(names: Iterable[str]) -> list[str]:
    """Of ``names`` those that have a word which none before them has, those with most words
    first; in the order of ``names``."""
    given, met = list(names), set[Hashable]()
    found = set[str]()
    for name in sorted(given, key=lambda name: (-len(words_of(name)), name)):
        if words_of(name) - met:
            found.add(name)
            met |= words_of(name)
    return [name for name in given if name in found]


@cache
def words_of(name: str) -> frozenset[Hashable]:
    """The directives of an example, their options, the values of these that are words, and its
    types."""
    text = examples.path_of(name).read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() for word in _words(line.partition("#")[0]))


def _words(line: str) -> Iterator[Hashable]:
    directive, *words = line.split() or ("",)
    yield directive
    for word in words if directive not in FREE else ():
        key, is_option, value = word.partition("=")
        if directive == "dtype":
            yield directive, value
        elif is_option:
            yield (directive, key) if value.isdigit() else (directive, key, value)


def is_even(order: tuple[str, str, str]) -> bool:
    """Whether storage orders of A, B and C are of a half of all eight in which any two of the
    matrices have every pair of orders: enough where no vector depends on all three."""
    return sum(each in ("k, m", "n, k", "n, m") for each in order) % 2 == 0
