"""Mistakes in stores of C by TMA are found by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from passes.schedules import CASES

from gemmgen import pipeline
from gemmgen.base.source import Source
from gemmgen.expand import epilogue_store
from gemmgen.ir.expanded import OneThread, Timed
from gemmgen.ir.expr import Binary, Int
from gemmgen.ir.instruction import is_instruction
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.output_slices import StoreBoxes
from gemmgen.ir.traversal import rebuilt
from gemmgen.language import parse_schedule
from gemmgen.lower import box_stores, requirements
from gemmgen.pipeline import compile_schedule, make_concrete
from gemmgen.proof.equivalence import same_meaning

NAME, SHAPE = "C by TMA", (35, 68, 12)
SHARED_UNITS = (35, 69, 12)
"""Three elements after each row of C are in the last 16 bytes of the row."""

Rule = Callable[[Timed], tuple[Timed, ...]]


def difference(shape: Shape = SHAPE) -> str | None:
    program = compile_schedule(parse_schedule(Source(CASES[NAME].text))).program
    found = same_meaning(make_concrete(program), program.problem, shape)
    return found and found.text()


def sent(patch: pytest.MonkeyPatch, rule: Rule) -> None:
    """Changes what the thread does that asks for a slice to be stored."""
    right = epilogue_store._slice

    def changed(node: Any) -> Any:
        if isinstance(node, OneThread):
            return replace(node, body=tuple(new for old in node.body for new in rule(old)))
        return rebuilt(node, changed) if not isinstance(node, StoreBoxes) else node

    patch.setattr(epilogue_store, "_slice", lambda *given: changed(right(*given)))


def waits_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epilogue_store, "_has_left", lambda *_: ())


def waits_at_the_end_alone(patch: pytest.MonkeyPatch) -> None:
    last = epilogue_store.epilogue_drain
    right = epilogue_store._has_left
    patch.setattr(epilogue_store, "_has_left", lambda *_: ())

    def after(kernel: Kernel) -> tuple[Timed, ...]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(epilogue_store, "_has_left", right)
            return last(kernel)

    patch.setattr("gemmgen.expand.kernel.epilogue_drain", after)


def never_waits_at_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("gemmgen.expand.kernel.epilogue_drain", lambda kernel: ())


def commits_nothing(patch: pytest.MonkeyPatch) -> None:
    sent(patch, lambda node: () if is_instruction(node, "commit_boxes") else (node,))


def stores_twice(patch: pytest.MonkeyPatch) -> None:
    """To the same place, by the same thread: that alone is not a mistake."""
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


def requires_no_whole_units(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requirements, "_whole_units", lambda context: ())


def test_rows_that_do_not_end_with_16_bytes_are_required_not_to_be_stored() -> None:
    with pytest.raises(ValueError, match=r"N % 4 == 0"):
        difference(SHARED_UNITS)


def test_zeros_after_rows_are_found() -> None:
    """TMA leaves out what is after a row in whole units of 16 bytes alone."""
    with pytest.MonkeyPatch.context() as patch:
        requires_no_whole_units(patch)
        assert difference() is None
        found = difference(SHARED_UNITS)
    assert found is not None and ("padding" in found or "out of bounds" in found), found


def test_a_box_that_begins_within_16_bytes_is_found() -> None:
    right = box_stores.add
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_stores, "add", lambda *terms: right(*terms, Int(1)))
        patch.setattr(pipeline, "check_box_addresses", lambda *_: None)  # which finds it first
        found = difference()
    assert found is not None and "no box begins here: no multiple of 16 bytes" in found, found
