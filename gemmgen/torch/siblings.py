"""Schedules of the same problem for arguments that a user's own kernel can't take.

A kernel has no fallback: a wide access is a requirement.  An operator takes what PyTorch's
functions take, so its kernel has siblings: the same schedule with narrow accesses of some tensors
and, finally, a plain schedule of the problem that requires nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.interface import Interface
from gemmgen.ir.requirement import Aligned, Requirement
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Directive, Operand, Schedule
from gemmgen.schedule.roles import roles

ASYNC_BYTES = 4
"""The smallest asynchronous copy."""


def narrowed(schedule: Schedule, tensors: frozenset[str]) -> Schedule:
    """The schedule with accesses of ``tensors`` in global memory one element wide, and nothing
    assumed of extents."""
    directives = (_narrow(schedule, directive, tensors) for directive in schedule.directives)
    kept = tuple(directive for directive in directives if directive is not None)
    return replace(schedule, assumes=(), requires=(), directives=kept)


def _narrow(schedule: Schedule, directive: Directive, tensors: frozenset[str]) -> Directive | None:
    if directive.name == "async_copy":
        directive = _without_maps(directive, tensors, schedule.gemm.c.tensor)
        types = dict(schedule.dtypes)
        narrow = (x for x in directive.operands if x.tensor in tensors)
        small = any(BYTES[types[x.tensor]] < ASYNC_BYTES for x in narrow)
        kept = () if small else directive.operands  # both operands are copied in the same way
    elif directive.name == "vectorize":
        kept = tuple(
            operand
            for given in directive.operands
            if (operand := _in_shared(schedule, given, tensors)) is not None
        )
    else:
        return directive
    return replace(directive, operands=kept) if kept else None


def _without_maps(directive: Directive, tensors: frozenset[str], output: str) -> Directive:
    """Copies of ``tensors`` that need no tensor map, whose rows are multiples of 16 bytes; threads
    store the ``output`` themselves."""
    via = directive.argument("via")
    if (
        via is None
        or via.value != "tma"
        or not any(x.tensor in tensors for x in directive.operands)
    ):
        return directive
    inputs = tuple(x for x in directive.operands if x.tensor != output)
    if not any(x.tensor in tensors for x in inputs):
        return replace(directive, operands=inputs)
    others = (replace(via, value="cp_async") if x is via else x for x in directive.arguments)
    return replace(directive, operands=inputs, arguments=tuple(others))


def _in_shared(schedule: Schedule, operand: Operand, tensors: frozenset[str]) -> Operand | None:
    """A wide operand without its hop through global memory, or None."""
    if operand.tensor not in tensors:
        return operand
    if operand.hop == "global" or operand.tensor == schedule.gemm.c.tensor:
        return None
    return replace(operand, hop="shared")


def owners(requirement: Requirement, interface: Interface) -> frozenset[str]:
    """The tensors whose accesses need ``requirement``; all if it is about an extent."""
    if isinstance(requirement, Aligned):
        return frozenset({requirement.name})
    pitched = {tensor for tensor, ld in interface.pitch if ld == requirement.name}
    stepped = {tensor for tensor, _, name in interface.strides if name == requirement.name}
    every = frozenset(p.name for p in interface.tensors)
    return frozenset(pitched | stepped) or every


def siblings(schedule: Schedule, unmet: frozenset[str]) -> Iterator[Emitted]:
    """Kernels for ``schedule`` without the requirements of the tensors ``unmet``: those tensors'
    accesses are narrow, or those of all."""
    gemm = schedule.gemm
    every = frozenset({gemm.a.tensor, gemm.b.tensor, gemm.c.tensor})
    for tensors in dict.fromkeys((unmet & every, every)):
        try:
            yield compiled(format_schedule(narrowed(schedule, tensors)))
        except ScheduleError:  # other directives need the ones that were removed
            continue


@lru_cache(512)
def compiled(text: str) -> Emitted:
    """The kernel of a schedule's text, compiled once in a process."""
    return compile_schedule(parse_schedule(Source(text)))


def plain(schedule: Schedule, shape: tuple[int, int, int], on_gpu: bool) -> str:
    """The text of a schedule that requires nothing of its arguments, for the schedule's problem.

    ``shape`` is M, N, K.  On a CPU it is the naive schedule, which compiles and runs fastest there.
    """
    text = format_schedule(replace(schedule.problem_alone, epilogue=None))
    if on_gpu:
        text += _tiles(schedule, shape)
    if schedule.epilogue:
        text += f"fuse_epilogue {format_expression(schedule.epilogue.expression)}\n"
    return text


def _tiles(schedule: Schedule, shape: tuple[int, int, int]) -> str:
    """Tiles of 128 x 128 for large matrices in single precision, else of 64 x 64."""
    m, n, k = roles(schedule.gemm)
    a, b = schedule.gemm.a.tensor, schedule.gemm.b.tensor
    double = dict(schedule.dtypes)["acc"] == "f64"
    size, depth, micro = (128, 8, 8) if min(shape[:2]) >= 1024 and not double else (64, 16, 4)
    wide = 2 if double else 4
    shared = "" if _halves(schedule) else f"vectorize {a}.shared {b}.shared width={wide}\n"
    return (
        f"tile {m}={size} {n}={size} {k}={depth}\n"
        f"cache_shared {a}[{k}, {m}] {b}[{k}, {n}]\n"
        f"register_block {m}={micro} {n}={micro}\n"
        f"{shared}pad {a} {b} by={wide}\n"
        f"double_buffer {a} {b}\n"
    )


def _halves(schedule: Schedule) -> bool:
    types = dict(schedule.dtypes)
    return any(BYTES[types[x.tensor]] < 4 for x in (schedule.gemm.a, schedule.gemm.b))
