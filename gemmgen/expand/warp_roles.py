"""The roles of a block's warps: a producer that copies tiles, and consumers that multiply them."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any, cast

from gemmgen.expand.pingpong import consumers_of_a_tile
from gemmgen.expand.pipeline_roles import RolePipeline
from gemmgen.ir import clusters, names
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.control import Block, Define
from gemmgen.ir.edit import contraction, pipeline_of
from gemmgen.ir.expanded import OneThread, Tiles, Timed
from gemmgen.ir.expr import Binary, Call, Expr, Var
from gemmgen.ir.instruction import instruction, is_instruction
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.occupancy import registers_by_role
from gemmgen.ir.partial_sums import Arrive
from gemmgen.ir.traversal import rebuilt
from gemmgen.ir.warp_roles import WarpRole, WarpRoles

PRODUCER = "load tiles into empty stages"
CONSUMERS = "multiply full stages, then run the epilogue"
PINGPONG = "alternate: "
END = "a block must not exit while others arrive at its barriers"


def with_producers(program: Program, kernel: Kernel, tiles: tuple[Timed, ...]) -> tuple[Timed, ...]:
    """The block's program, in which the warps after those that compute ``tiles`` copy their
    operands."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    ring = RolePipeline(program, kernel, pipeline)
    is_producer = Binary(">=", Var("threadIdx.x"), names.CONSUMERS)
    count, origins = kernel.consumers, kernel.producers.origins
    fewer, more = _registers(program, kernel)
    producer = (*fewer, ring.produced(), *before_leaving(kernel))
    roles = (
        WarpRole(
            "producer",
            count,
            kernel.threads - count,
            f"the producer: {PRODUCER}",
            origins,
            producer,
            is_producer,
        ),
        WarpRole(
            "consumers",
            0,
            kernel.spread.threads,
            f"the consumers: {PINGPONG if kernel.producers.pingpong > 1 else ''}{CONSUMERS}",
            origins,
            (*more, *_consumer_number(kernel), *_among_consumers(kernel, tiles)),
            groups=kernel.producers.pingpong,
        ),
    )
    return (ring.barriers(), WarpRoles(roles), *_end(kernel))


def _end(kernel: Kernel) -> tuple[Timed, ...]:
    """Blocks of a cluster end together, unless some of them leave early."""
    return () if kernel.work.parts > 1 else _together(kernel)


def _together(kernel: Kernel) -> tuple[Timed, ...]:
    if not kernel.work.cluster:
        return ()
    return (Block(END, clusters.origins_of(kernel.work), (instruction("sync_cluster"),)),)


def before_leaving(kernel: Kernel) -> tuple[Timed, ...]:
    """Where blocks leave once they have written their partial sums: no barrier of theirs is used
    any more."""
    return _together(kernel) if kernel.work.parts > 1 else ()


def _consumer_number(kernel: Kernel) -> tuple[Timed, ...]:
    """Which of the ping-pong consumers the thread belongs to."""
    if kernel.producers.pingpong == 1:
        return ()
    number: Expr = Var("threadIdx.x") / names.CONSUMER
    if ATOMS[contraction(kernel).atom].in_place:
        number = Call("uniform", (number,))  # as addresses in descriptors follow from it
    return (Define(names.CONSUMER_NUMBER.name, number),)


def _among_consumers(kernel: Kernel, tiles: tuple[Timed, ...]) -> tuple[Timed, ...]:
    """``tiles`` with the own barrier of those who share one in place of the block's, to which the
    producer does not come."""
    several = kernel.producers.pingpong > 1
    number: Expr = names.CONSUMER_BARRIER
    if several:
        number = number + names.CONSUMER_NUMBER

    def own(node: Any) -> Any:
        if is_instruction(node, "sync_block"):
            return instruction("sync_warps", number, consumers_of_a_tile(kernel))
        if isinstance(node, Arrive):
            return replace(node, number=number, threads=consumers_of_a_tile(kernel))
        if isinstance(node, OneThread) and several:
            node = replace(node, among="tile")
        if isinstance(node, Tiles):
            node = replace(node, pingpong=kernel.producers.pingpong)
        if isinstance(node, tuple) or is_dataclass(node):
            return rebuilt(cast("object", node), own)
        return node

    return own(tiles)


def _registers(program: Program, kernel: Kernel) -> tuple[tuple[Timed, ...], tuple[Timed, ...]]:
    """What the producer gives up and what consumers take, if the target can share out registers."""
    if registers_by_role(kernel, program.target) is None:
        return (), ()
    released = instruction("fewer_registers", names.PRODUCER_REGISTERS)
    return (released,), (instruction("more_registers", names.CONSUMER_REGISTERS),)
