"""The duties of a block's warps: a producer that copies tiles, and consumers that multiply them."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, cast

from gemmgen.expand.pipeline_duties import DutyPipeline
from gemmgen.ir import names
from gemmgen.ir.control import Barrier
from gemmgen.ir.duties import Duties, Duty, NamedBarrier, SetRegisters
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.expanded import Timed
from gemmgen.ir.expr import Binary, Var
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.occupancy import registers_by_duty
from gemmgen.ir.parts import rebuilt

PRODUCER = "copy tiles into the stages that are empty, as far ahead as there are stages"
CONSUMERS = "multiply the tiles that have landed, and store the sums"
MEETING = 1
"""The named barrier of the consumers; 0 is the block's."""


def with_producers(program: Program, kernel: Kernel, tiles: tuple[Timed, ...]) -> tuple[Timed, ...]:
    """The block's program, in which the warps behind those that compute ``tiles`` copy their
    operands."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    ring = DutyPipeline(program, kernel, pipeline)
    behind = Binary(">=", Var("threadIdx.x"), names.CONSUMERS)
    count, origins = kernel.spread.threads, kernel.producers.origins
    fewer, more = _registers(program, kernel)
    producer = (*fewer, ring.produced())
    duties = (
        Duty(
            "producer",
            count,
            kernel.threads - count,
            f"the producer: {PRODUCER}",
            origins,
            producer,
            behind,
        ),
        Duty(
            "consumers",
            0,
            count,
            f"the consumers: {CONSUMERS}",
            origins,
            (*more, *_among_consumers(tiles)),
        ),
    )
    return (ring.barriers(), Duties(duties))


def _among_consumers(node: Any) -> Any:
    """``node`` with the consumers' own barrier in place of the block's, to which the producer does
    not come."""
    if isinstance(node, Barrier):
        return NamedBarrier(MEETING, names.CONSUMERS)
    if isinstance(node, tuple) or is_dataclass(node):
        return rebuilt(cast("object", node), _among_consumers)
    return node


def _registers(program: Program, kernel: Kernel) -> tuple[tuple[Timed, ...], tuple[Timed, ...]]:
    """What the producer gives up and what consumers take, if the target can share out registers."""
    found = registers_by_duty(kernel, program.target)
    if found is None:
        return (), ()
    fewer, more = found
    return (SetRegisters(fewer),), (SetRegisters(more, more=True),)
