"""``require same_bits``: the bits of an element of C must not depend on these extents."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.schedule.model import SameBits, Schedule
from gemmgen.summation.order_reading import summation_order
from gemmgen.summation.order_value import SummationOrder


def check_same_bits(schedule: Schedule, program: Program, kernel: LoweredKernel) -> None:
    """Raises ``ScheduleError`` if the bits of an element may depend on the extent of a letter that
    the schedule's ``require same_bits`` names."""
    if schedule.same_bits is None:
        return
    order = summation_order(program, kernel)
    mistakes = tuple(_mistakes(schedule.same_bits, program, order))
    if mistakes:
        raise ScheduleError(schedule.source, mistakes)


def _mistakes(asked: SameBits, program: Program, order: SummationOrder) -> Iterator[Mistake]:
    if not order.reproducible:
        count = order.slices.count
        yield Mistake(
            f"require same_bits: the bits of an element of {program.problem.c.name} differ from "
            "launch to launch",
            asked.span,
            f"split_k parts={count}, whose slices are added in their order",
            (f"{count} slices of K are added as blocks arrive: (a + b) + c is not a + (b + c)",),
        )
        return
    for letter in asked.letters:
        reasons = order.varies_with(letter)
        if reasons:
            yield Mistake(
                f"require same_bits over {letter}: the bits of an element of "
                f"{program.problem.c.name} may depend on the extent of {letter}",
                asked.span,
                _hint(order, letter),
                reasons,
            )
        yield from _equal_extents(asked, program, letter)


def _hint(order: SummationOrder, letter: str) -> str:
    if letter in order.depends:
        return f"slices of K that follow from K alone, not from the extent of {letter}"
    return "`gemmgen explain` prints the summation order; a schedule without that directive"


def _equal_extents(asked: SameBits, program: Program, letter: str) -> Iterator[Mistake]:
    """An extent that is assumed equal to K is the number of products."""
    problem = program.problem
    pair = {problem.extent(letter), problem.extent(problem.k)}
    for fact in program.facts:
        if fact.equals is not None and {fact.name, fact.equals} == pair:
            text = f"assume {fact.name} == {fact.equals}"
            yield Mistake(
                f"require same_bits over {letter}: with `{text}` the extent of {letter} is the "
                "number of products of an element",
                asked.span,
                f"leave `{text}` out",
            )
