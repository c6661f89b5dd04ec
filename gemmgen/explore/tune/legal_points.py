"""The legal points of a space: those that the compiler accepts, at these shapes.

Each point is compiled up to the lowered kernel and the target's limits; only emission is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from gemmgen.analyze.launch_arguments import Shape, arguments_of
from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.record import record
from gemmgen.explore.cost import BlockSizes
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.explore.tune.space import SearchSpace, Settings
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.limits.device_limits import check_limits
from gemmgen.pipeline import make_concrete, rewrite
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.summation import SummationOrder, summation_order
from gemmgen.summation.same_bits import check_same_bits

CHUNK = 128
"""Points of one job of a process."""


class SearchPoint(Protocol):
    """A schedule that a search may try."""

    @property
    def number(self) -> int: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def text(self) -> str: ...


@record
class Legal:
    """A point that compiles: its canonical text, and its sizes for the cost model."""

    number: int
    settings: Settings
    text: str
    block: BlockSizes


@dataclass
class Census:
    """The legal points, in the space's order, and the reasons against the others."""

    points: int = 0
    legal: list[Legal] = field(default_factory=list[Legal])
    refused: Counter[str] = field(default_factory=Counter[str])

    def add(self, found: Found) -> None:
        self.points += 1
        if isinstance(found, str):
            self.refused[found] += 1
        else:
            self.legal.append(found)


Found = Legal | str
"""A legal point, or its first mistake."""


def census(
    space: SearchSpace,
    shapes: Sequence[Shape],
    pool: Executor | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Census:
    """Judges every point of ``space``; with a ``pool``, in its processes."""
    found = Census()
    chunk_at = partial(_judge_chunk, space, tuple(shapes), common_order(space))
    for chunk in (pool.map if pool else map)(chunk_at, range(0, space.size, CHUNK)):
        for one in chunk:
            found.add(one)
        progress(found.points, space.size)
    return found


def common_order(space: SearchSpace) -> SummationOrder | None:
    """The summation order that ``require same_bits`` keeps a search to, whatever its shapes: that
    of the first point that compiles.  None without that line, or if no point compiles."""
    for number in range(space.size):
        try:
            schedule = space.schedule(number)
            if schedule.same_bits is None:
                return None
            program, kernel = _lowered(schedule)
        except ScheduleError:
            continue
        return summation_order(program, kernel)
    return None


def judge(
    space: SearchSpace,
    number: int,
    shapes: Sequence[Shape],
    order: SummationOrder | None = None,
) -> Found:
    """One point: legal, or its first mistake; with ``order`` it has to sum so."""
    try:
        schedule = space.schedule(number)
        block = sized(schedule, shapes, order)
    except (ScheduleError, UsageError) as error:
        return error.message if isinstance(error, ScheduleError) else str(error)
    return Legal(number, space.settings(number), format_schedule(schedule), block)


def sized(
    schedule: Schedule, shapes: Sequence[Shape], order: SummationOrder | None = None
) -> BlockSizes:
    """The sizes of the schedule's blocks for the cost model.

    Raises ``ScheduleError`` for one that does not compile, ``UsageError`` if its kernel does not
    take dense tensors of one of ``shapes``, or adds in another ``order``.
    """
    program, kernel = _lowered(schedule)
    if order is not None:
        names = order.differences(summation_order(program, kernel))
        if names:
            raise UsageError(
                "require same_bits keeps a search to the summation order of its first point, and "
                f"this point has another one: {', '.join(names)}"
            )
    for shape in shapes:
        arguments_of(kernel.interface, program.problem, shape, dense=True)
    return block_sizes(program, kernel.interface)


def _lowered(schedule: Schedule) -> tuple[Program, LoweredKernel]:
    """The program after the passes, and its kernel, within the limits; raises
    ``ScheduleError``."""
    program = rewrite(schedule)[-1].program
    kernel = make_concrete(program).kernels[0]
    check_limits(schedule, program, kernel)
    check_same_bits(schedule, program, kernel)
    return program, kernel


def _judge_chunk(
    space: SearchSpace, shapes: tuple[Shape, ...], order: SummationOrder | None, first: int
) -> list[Found]:
    """One job of a process: at most ``CHUNK`` points from ``first`` on."""
    last = min(first + CHUNK, space.size)
    return [judge(space, number, shapes, order) for number in range(first, last)]
