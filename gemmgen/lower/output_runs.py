"""A run of C's neighbours on its way between two places: at once where all of them exist."""

from __future__ import annotations

from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Assign, For, If
from gemmgen.ir.edit import copy_outward
from gemmgen.ir.expr import Element, Int, Var
from gemmgen.ir.nodes import Copy, Map
from gemmgen.ir.simplify import add, less
from gemmgen.ir.thread_code import Function, Invoke, Move, Node, Parameter
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context
from gemmgen.lower.vectors import store_width


def moved(context: Context, node: Map | Copy, target: Element, source: Element) -> tuple[Node, ...]:
    """A run of the output between two places: at once if it is whole, else one by one; ``node``
    writes it, its first element is at the index in the variable of C's contiguous letter."""
    inner, width = context.problem.c.contiguous, store_width(context.kernel, node)
    if width == 1:
        return (Assign(target, source),)
    if bounds.runs_are_whole(context, inner, width):
        return (Move(target, source, width, context.buffer(node.dst).dtype),)
    end = bounds.extent(context, inner)
    return (Invoke(_bounded_copy(context, node), (target, source, Var(inner), end)),)


def _bounded_copy(context: Context, node: Map | Copy) -> Function:
    """Moves the elements of a run that exist: at once if all do."""
    width, dtype = store_width(context.kernel, node), context.buffer(node.dst).dtype
    vector, e = context.width(node.dst), context.element
    first, stop = Var("first"), Var("stop")
    one = Assign(Element("target", (e,)), Element("source", (e,)))
    inside = If(less(add(first, e), stop), (one,))
    each = For(e.name, Int(0), vector, Int(1), (inside,))
    whole = Move(Element("target", (Int(0),)), Element("source", (Int(0),)), width, dtype)
    return Function(
        f"copy{width}",
        "copies the elements before `stop` of a vector whose first index is `first`",
        _origins(context),
        (
            Parameter("target", dtype, written=True),
            Parameter("source", dtype),
            Parameter("first"),
            Parameter("stop"),
        ),
        (If(less(addresses.last_of(first, vector), stop), (whole,), (each,)),),
    )


def _origins(context: Context) -> Origins:
    """What shaped the accesses to the output."""
    outward = copy_outward(context.kernel)
    also = outward.origins if outward else ()
    return tuple(dict.fromkeys((*context.final.origins, *also)))
