"""Accumulators of an instruction that are added to the kernel's, each in its register."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from gemmgen.ir.control import Assign
from gemmgen.ir.expr import Call, Element, Expr, Int, Var
from gemmgen.ir.nodes import Promote
from gemmgen.ir.thread_code import Node
from gemmgen.lower.context import Context
from gemmgen.lower.scale_fragments import scale_fragment
from gemmgen.lower.types import number


def promote(context: Context, node: Promote) -> tuple[Node, ...]:
    """``acc += part``, or ``part`` times the factors of its block; ``part`` is zero again, unless
    its first products are not added to it."""
    fragments = [scale_fragment(context, name) for name in node.scales]

    def one(total: Element | Var, _number: Expr) -> tuple[Node, ...]:
        assert isinstance(total, Element)
        part = replace(total, buffer=node.part)
        value: Expr = total + part
        if fragments:
            registers = dict(zip(context.letters, total.indices, strict=True))
            factors = [fragment.at(registers[fragment.letter]) for fragment in fragments]
            factor = reduce(lambda product, other: product * other, factors)
            value = Call("fmaf", (part, factor, total))
        added = Assign(total, value)
        if not context.lowering.born_zero:
            return (added,)
        return (added, Assign(part, number(0, context.problem.accumulate)))

    return context.lowering.each_sum(context, Int(1), one)
