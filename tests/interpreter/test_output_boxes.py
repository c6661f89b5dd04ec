"""Mistakes on C's way out by the copy engine are found by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from passes.schedules import CASES

from gemmgen.base.source import Source
from gemmgen.expand import way_out
from gemmgen.ir.box_stores import CommitBoxes
from gemmgen.ir.expanded import OneThread, StoreBoxes, Timed
from gemmgen.ir.expr import Binary, Int
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.parts import rebuilt
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule, make_concrete
from gemmgen.proof.equivalence import same_meaning

NAME, SHAPE = "C by the copy engine", (35, 68, 12)

Rule = Callable[[Timed], tuple[Timed, ...]]


def difference() -> str | None:
    program = compile_schedule(parse_schedule(Source(CASES[NAME].text))).program
    found = same_meaning(make_concrete(program), program.problem, SHAPE)
    return found and found.text()


def sent(patch: pytest.MonkeyPatch, rule: Rule) -> None:
    """Changes what the thread does that asks for a slice to be stored."""
    right = way_out._slice

    def changed(node: Any) -> Any:
        if isinstance(node, OneThread):
            return replace(node, body=tuple(new for old in node.body for new in rule(old)))
        return rebuilt(node, changed) if not isinstance(node, StoreBoxes) else node

    patch.setattr(way_out, "_slice", lambda *given: changed(right(*given)))


def waits_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(way_out, "_has_left", lambda outward: ())


def waits_at_the_end_alone(patch: pytest.MonkeyPatch) -> None:
    last = way_out.behind_tiles
    right = way_out._has_left
    patch.setattr(way_out, "_has_left", lambda outward: ())

    def behind(kernel: Kernel) -> tuple[Timed, ...]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(way_out, "_has_left", right)
            return last(kernel)

    patch.setattr("gemmgen.expand.kernel.behind_tiles", behind)


def never_waits_at_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("gemmgen.expand.kernel.behind_tiles", lambda kernel: ())


def commits_nothing(patch: pytest.MonkeyPatch) -> None:
    sent(patch, lambda node: () if isinstance(node, CommitBoxes) else (node,))


def stores_twice(patch: pytest.MonkeyPatch) -> None:
    """To the same place, by the same thread: that alone is no mistake."""
    sent(patch, lambda node: (node, node) if isinstance(node, StoreBoxes) else (node,))


def stores_another_row(patch: pytest.MonkeyPatch) -> None:
    def rule(node: Timed) -> tuple[Timed, ...]:
        if isinstance(node, StoreBoxes):
            return (replace(node, row=Binary("+", node.row, Int(1))),)
        return (node,)

    sent(patch, rule)


MISTAKES = {
    waits_for_nothing: "a store that is not waited for",
    never_waits_at_the_end: "a store that is not waited for",
    commits_nothing: "a store that is not waited for",
    waits_at_the_end_alone: "C[",
    stores_another_row: "read what another thread wrote",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_finds(mistake: Callable[[pytest.MonkeyPatch], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mistake(patch)
        found = difference()
    assert found is not None and MISTAKES[mistake] in found, found


def test_nothing_is_found_without_a_mistake() -> None:
    assert difference() is None
    with pytest.MonkeyPatch.context() as patch:
        stores_twice(patch)
        assert difference() is None
