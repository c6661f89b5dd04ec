"""Accumulators of an instruction that are added to the kernel's, each in its register."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.ir.control import Assign
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.nodes import Promote
from gemmgen.ir.thread_code import Node
from gemmgen.lower.context import Context
from gemmgen.lower.types import number


def promote(context: Context, node: Promote) -> tuple[Node, ...]:
    """``acc += part``; ``part`` is zero again, unless its first products are not added to it."""

    def one(total: Element | Var, _number: Expr) -> tuple[Node, ...]:
        assert isinstance(total, Element)
        part = replace(total, buffer=node.part)
        added = Assign(total, total + part)
        if not context.lowering.born_zero:
            return (added,)
        return (added, Assign(part, number(0, context.problem.accumulate)))

    return context.lowering.each_sum(context, Int(1), one)
