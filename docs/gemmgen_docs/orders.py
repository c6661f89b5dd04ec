"""The order of optimizations: of the documents, of the passes and of the rungs, side by side."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.ladder import LADDER
from gemmgen.schedule import examples
from gemmgen_docs import schedules
from gemmgen_docs.markdown import code, table

FILE = Path(__file__).parents[1] / "data" / "orders.toml"
PASSES = tuple(rung.SPEC.name for rung in (*LADDER, FuseEpilogue))
"""Every directive, in the order in which the passes run."""

Order = Mapping[str, int]
"""The step, from 1, at which each directive comes; those that come at once have one step."""


@functools.cache
def of_documents() -> Mapping[str, Order]:
    """The order of each document, by its key."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))["order"]
    return {
        one["key"]: {
            name: at for at, step in enumerate(one["steps"], start=1) for name in step.split()
        }
        for one in found
    }


def of_passes() -> Order:
    """The order in which the passes run."""
    return {name: at for at, name in enumerate(PASSES, start=1)}


@functools.cache
def of_rungs() -> Order:
    """The rung of the ladder that first has a directive; ``naive``, with none, is the first."""
    found: dict[str, int] = {}
    rungs = [name for name in examples.LADDER if name != "uncoalesced"]
    for at, name in enumerate(rungs):
        for line in schedules.statements(schedules.text(name)):
            if (word := schedules.directive(line)) in PASSES:
                found.setdefault(word, at)
    return found


def side_by_side() -> str:
    """A line for each directive that a document or a rung has: its place in each order."""
    columns = {**of_documents(), "the rungs": of_rungs()}
    rows = [
        (code(name), *(str(one.get(name, "")) for one in (of_passes(), *columns.values())))
        for name in PASSES
        if any(name in one for one in columns.values())
    ]
    header = ("directive", "the passes", *map(_called, columns))
    counts = [against(one) for one in columns.values()]
    rows.append(("pairs in another order than the passes'", "", *counts))
    return table(header, rows, right=range(1, len(header)))


def _called(key: str) -> str:
    return "the outline" if key == "outline" else key


def against(one: Order) -> str:
    """How many pairs of its directives the passes take in the other order, of how many."""
    pairs = [pair for pair in combinations(one, 2) if one[pair[0]] != one[pair[1]]]
    return f"{len(inverted(one))} of {len(pairs)}"


def inverted(one: Order) -> Sequence[tuple[str, str]]:
    """The pairs that an order and the passes take in opposite order, as the order has them."""
    ordered = sorted(one, key=lambda name: one[name])
    place = of_passes()
    return [(a, b) for a, b in combinations(ordered, 2) if one[a] < one[b] and place[a] > place[b]]


def before_the_last(first: str) -> str:
    """The directives from ``first`` on, but for the last, in the order of their passes."""
    return ", ".join(map(code, PASSES[PASSES.index(first) : -1]))


def pairs(key: str) -> str:
    """The pairs of a document (or of the rungs) that the passes take in the other order."""
    one = of_rungs() if key == "rungs" else of_documents()[key]
    found = [f"{code(a)} before {code(b)}" for a, b in inverted(one)]
    return ", ".join(found) or "none"


def rungs() -> str:
    """The rungs, and the directives that are new in each."""
    new: dict[int, list[str]] = {}
    for name, at in of_rungs().items():
        new.setdefault(at, []).append(code(name))
    names = [name for name in examples.LADDER if name != "uncoalesced"]
    rows = [
        (str(at), f"[{name}](ladder/{name}.md)", ", ".join(new.get(at, [])))
        for at, name in enumerate(names)
    ]
    return table(("", "rung", "first has"), rows)
