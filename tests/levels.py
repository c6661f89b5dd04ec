"""The three levels of tests: what a default run has, what CI adds, and what a command alone runs.

A test is of the first level, unless it is marked ``proof`` or ``exhaustive``.  Marks give
the parameters of a test their levels: ``by_default`` names those of the first, ``in_proof`` those
that the proof adds.  The others repeat a mechanism, and are run by ``--exhaustive``.
"""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from math import ceil
from zlib import crc32

import pytest

PROOF, EXHAUSTIVE = "proof", "exhaustive"


def is_proof(config: pytest.Config) -> bool:
    """Are the tests asked for that a default run leaves out?"""
    chosen = config.getoption("-m")
    return bool(config.getoption("--proof")) or PROOF in chosen or is_exhaustive(config)


def is_exhaustive(config: pytest.Config) -> bool:
    """Is everything asked for?"""
    return bool(config.getoption("--exhaustive")) or EXHAUSTIVE in config.getoption("-m")


def give_levels(items: list[pytest.Item]) -> None:
    """Marks what marks leave to the proof or to ``--exhaustive`` and, where one of these is run,
    what does more in it."""
    of_proof: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_default = item.get_closest_marker("by_default")
        if by_default is not None and not is_named(item, by_default):
            item.add_marker(PROOF)
        if _is(item, PROOF) and item.get_closest_marker("in_proof"):
            of_proof[test_of(item)].append(item)
    for family in of_proof.values():
        for item in left_over(family):
            item.add_marker(EXHAUSTIVE)
    for item in items:
        if does_more(item, EXHAUSTIVE) and is_exhaustive(item.config):
            item.add_marker(EXHAUSTIVE)
        if _is(item, EXHAUSTIVE) or (does_more(item, PROOF) and is_proof(item.config)):
            item.add_marker(PROOF)


def left_over(family: list[pytest.Item]) -> list[pytest.Item]:
    """Of the tests of one function those that its mark ``in_proof`` does not take.

    A ``share`` takes the first, which may do more than the others, and draws the others by their
    names: neighbors are alike.
    """
    mark = family[0].get_closest_marker("in_proof")
    assert mark is not None
    taken = [item for item in family if is_named(item, mark)]
    if "share" in mark.kwargs:
        drawn = sorted(family[1:], key=lambda item: crc32(parameters(item).encode()))
        taken += [family[0], *drawn][: ceil(len(family) / mark.kwargs["share"])]
    return [item for item in family if item not in taken]


def is_left_out(item: pytest.Item) -> bool:
    """Whether the level of a test is not asked for."""
    if _is(item, EXHAUSTIVE):
        return not is_exhaustive(item.config)
    return _is(item, PROOF) and not is_proof(item.config)


def _is(item: pytest.Item, level: str) -> bool:
    return item.get_closest_marker(level) is not None


def is_named(item: pytest.Item, mark: pytest.Mark) -> bool:
    """Whether the patterns of ``mark`` say that its level has this test."""
    if "but" in mark.kwargs:
        return not any(matches(item, pattern) for pattern in mark.kwargs["but"])
    return any(matches(item, pattern) for pattern in mark.args)


def test_of(item: pytest.Item) -> str:
    """The name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def parameters(item: pytest.Item) -> str:
    """The parameters of a test, as its name has them."""
    return item.name.partition("[")[2].removesuffix("]")


def matches(item: pytest.Item, pattern: str) -> bool:
    """Whether the parameters of a test are of this pattern, one of ``fnmatch``."""
    return fnmatch.fnmatchcase(parameters(item), pattern)


def does_more(item: pytest.Item, level: str) -> bool:
    """Does a test do with less where ``level`` is not asked for?"""
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return (is_property and level == PROOF) or level in getattr(item, "fixturenames", ())


def idle_rules(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """The patterns of marks that no test of a whole collection has, and idle shares."""
    if config.args != config.getini("testpaths") or config.getoption("-k"):
        return []
    met: dict[str, bool] = {}
    for item in items:
        for mark in item.iter_markers():
            if mark.name in ("by_default", "in_proof"):
                _note(item, mark, met)
    return [rule for rule, found in met.items() if not found]


def _note(item: pytest.Item, mark: pytest.Mark, met: dict[str, bool]) -> None:
    """Notes the rules of ``mark`` that its test matches."""
    test = f"{test_of(item)} {mark.name}"
    for pattern in (*mark.args, *mark.kwargs.get("but", ())):
        rule = f"{test}[{pattern}]"
        met[rule] = met.get(rule, False) or matches(item, pattern)
    if "share" in mark.kwargs:
        met[test] = met.get(test, False) or _is(item, EXHAUSTIVE)
