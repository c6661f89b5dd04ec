"""Scales of blocks: where they are, and which elements they are the factors of.

The place of a scale has for each letter the index of an element in its block, not that of the
block: ``SA[k/128, m]`` at ``k/128 = x`` is the factor of the block that element x is in.  So it
grows along k as elements do, and an element and its factor have the same indices.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir.blocked_letters import block
from gemmgen.ir.expr import Binary, Expr, Int, children
from gemmgen.prove import condition_queries, conditions, element_accesses, integers, polynomials
from gemmgen.prove.data import Data, Pick, TensorElement
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import GlobalPlace, WalkState
from gemmgen.prove.walk_context import WalkContext


def divided_in(expr: Expr) -> Iterator[tuple[Expr, int]]:
    """The numbers that an index divides, and by what, from left to right."""
    match expr:
        case Binary("/", x, Int(divisor)):
            yield x, divisor
        case _:
            for part in children(expr):
                yield from divided_in(part)


def load(
    context: WalkContext, state: WalkState, place: GlobalPlace, parts: list[tuple[Polynomial, int]]
) -> Data:
    """A scale in global memory; ``parts`` are the numbers that its index divides, and by what."""
    at = element_accesses.coordinates(context, place)
    left, found = list(parts), list[tuple[str, Polynomial]]()
    for letter, form in at:
        own, size = polynomials.scale(form, block(letter)), block(letter)
        if size > 1 and left and left[0][1] == size:
            x, _ = left.pop(0)
            # x is in the block that is read, or the first element of that block is taken
            own = x if polynomials.same(block_of(context, x, size), form) else own
        found.append((letter, own))
        _check_inside(context, state, place.param.name, letter, form, own)
    element_accesses.check_pitch(context, state, place)
    return element_accesses.element(context, place.param.name, tuple(found))


def _check_inside(
    context: WalkContext, state: WalkState, name: str, letter: str, form: Polynomial, x: Polynomial
) -> None:
    """That a block is one of the tensor's: ``0 <= x``, and its first element is inside, which it
    is if x is."""
    extent, size = context.extent(letter), block(letter)
    inside = conditions.less(x, extent)
    if size > 1 and not condition_queries.is_stated(state.path, inside):
        begins = conditions.less(polynomials.scale(form, size), extent)
        inside = conditions.any_of(inside, begins)
    for claim in (conditions.not_negative(x), inside):
        context.claim(state, "global bounds", claim, f"{name} is accessed outside", (name, (form,)))


def block_of(context: WalkContext, x: Polynomial, size: int) -> Polynomial:
    """The number of the block that element ``x`` is in."""
    return integers.divided(context.theory, x, polynomials.fixed(size))[0]


def is_scale(context: WalkContext, value: object) -> bool:
    """Whether a value is a scale of a block, at least under a condition."""
    if isinstance(value, Pick):
        return is_scale(context, value.yes) or is_scale(context, value.no)
    return isinstance(value, TensorElement) and value.tensor in context.scale_tensors


def element_index(index: Expr, letter: str) -> Expr:
    """An index of a box along a letter, as that of an element: block ``x / size`` has x in it, and
    block i begins with ``i * size``."""
    size = block(letter)
    match index:
        case Binary("/", x, Int(divisor)) if divisor == size:
            return x
        case _:
            return index if size == 1 else Binary("*", index, Int(size))
