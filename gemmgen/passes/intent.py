"""The intent of a schedule, which ``build`` gives to the program: no other pass reads a directive
that is not its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from gemmgen.ir.atoms import Via
from gemmgen.ir.intent import Intent
from gemmgen.passes.base import OperandArgument, Stated
from gemmgen.schedule.model import Directive, Gemm, Operand, Schedule
from gemmgen.schedule.roles import roles


def intent_of(schedule: Schedule) -> Intent:
    """The facts that passes must know about each other's directives."""
    said: dict[str, tuple[Directive, ...]] = {}
    for directive in schedule.directives:
        said[directive.name] = (*said.get(directive.name, ()), directive)
    found = {name: Stated(statements) for name, statements in said.items()}
    bind, block, atom = map(found.get, ("bind", "register_block", "tensor_core"))
    split, wide = found.get("split_k"), found.get("vectorize")
    widths = wide.facts("width") if wide else ()
    inputs = (schedule.gemm.a.tensor, schedule.gemm.b.tensor)
    k_lanes = split is not None and split.word("within") is not None
    return Intent(
        bound=bind.word("x") if bind else None,
        micro_tile=block.sizes(roles(schedule.gemm)[:2]) if block else (),
        via=cast(Via, atom.word("via")) if atom else None,
        fragment_widths=tuple(
            (fact.tensor, fact.value)
            for fact in widths
            if fact.operand.hop in (None, "shared") and fact.tensor in inputs
        ),
        swizzled=tuple(o.tensor for o, _ in _operands(said, "swizzle")),
        staged=tuple(o.tensor for o, _ in _operands(said, "double_buffer") if o.hop != "register"),
        copied=tuple(
            (o.tensor, stated.word("via") or "") for o, stated in _operands(said, "async_copy")
        ),
        k_lanes=k_lanes,
        k_reads=tuple(
            (fact.tensor, fact.value, fact.origin)
            for fact in widths
            if k_lanes and _reads_along_k(fact, schedule.gemm)
        ),
    )


def _operands(
    said: Mapping[str, tuple[Directive, ...]], name: str
) -> Iterator[tuple[Operand, Stated]]:
    """The operands of a directive's statements, each with its statement."""
    for statement in said.get(name, ()):
        yield from ((operand, Stated((statement,))) for operand in statement.operands)


def _reads_along_k(fact: OperandArgument, gemm: Gemm) -> bool:
    """Whether ``fact`` is a wide read from global memory along the contracted letter."""
    along = {access.tensor: access.indices[-1] for access in (gemm.a, gemm.b)}.get(fact.tensor)
    return along is not None and along not in gemm.c.indices and fact.operand.hop != "shared"
