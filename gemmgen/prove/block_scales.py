"""Scales of blocks: which element's factor a number is, and what it may multiply.

The place of a scale has an index of an element for each letter, not of a block: ``SA[k/128, m]`` at
``k/128 = x`` is the factor of the block that element x is in, if x is inside the extent.  So it
grows along k as the elements do, and the same element and factor have the same index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.expr import Binary, Expr, Int, children
from gemmgen.prove import conditions, data, element_accesses, integers, polynomials, products
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import (
    Apply,
    Data,
    Pick,
    TensorElement,
    Total,
    UnknownData,
)
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import GlobalPlace, WalkState
from gemmgen.prove.walk_context import WalkContext

# ---- where scales are ----


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
            own = x if polynomials.same(_block_of(context, x, size), form) else own
        found.append((letter, own))
        _check_inside(context, state, place.param.name, letter, form, own)
    return element_accesses.element(context, place.param.name, tuple(found))


def _check_inside(
    context: WalkContext, state: WalkState, name: str, letter: str, form: Polynomial, x: Polynomial
) -> None:
    """That a block is one of the tensor's: ``0 <= x``, and its first element is inside, which it
    is if x is."""
    extent, size = context.extent(letter), block(letter)
    inside = conditions.less(x, extent)
    key = ("block", tuple(map(id, state.path)), conditions.signature(inside))
    if size > 1 and not context.theory.decided(key, state.path, inside):
        inside = conditions.less(polynomials.scale(form, size), extent)
    for claim in (conditions.not_negative(x), inside):
        context.claim(state, "global bounds", claim, f"{name} is accessed outside", (name, (form,)))


def _block_of(context: WalkContext, x: Polynomial, size: int) -> Polynomial:
    return integers.divided(context.theory, x, polynomials.fixed(size))[0]


def is_scale(context: WalkContext, value: object) -> bool:
    """Whether a value is a scale of a block, at least under a condition."""
    if isinstance(value, Pick):
        return is_scale(context, value.yes) or is_scale(context, value.no)
    return isinstance(value, TensorElement) and value.tensor in context.block_scales.values()


# ---- elements times scales ----


def product(context: WalkContext, state: WalkState, left: Data, right: Data) -> Data | None:
    """An element of an operand times the factor of its block; None if it is another product."""
    for own, scale in ((left, right), (right, left)):
        if not _is_element(context, own):
            continue
        if is_scale(context, scale) or scale == data.ZERO:
            return _scaled(context, state, own, scale)
    return None


def _is_element(context: WalkContext, value: Data) -> bool:
    if isinstance(value, Pick):
        return _is_element(context, value.yes) or _is_element(context, value.no)
    return isinstance(value, TensorElement) and context.base.get(value.tensor) is not None


def _scaled(context: WalkContext, state: WalkState, own: Data, scale: Data) -> Data:
    own, scale = (products.settled(context, state, each, used=True) for each in (own, scale))
    for each in (own, scale):
        if isinstance(each, UnknownData):
            return _unknown(context, state, each)
    if own == data.ZERO:
        return own
    about = f"multiplies {data.shown(own, 0)} by {data.shown(scale, 0)}"
    if not isinstance(own, TensorElement) or own.term is not None:
        return _wrong(context, state, about)
    name = context.block_scales.get(own.tensor)
    if name is None and scale == data.ZERO:
        return scale
    if scale == data.ZERO:
        outside = conditions.negated(products.inside_tensor(context, own))
        context.claim(state, "products", outside, f"{about}, which is inside")
    elif not isinstance(scale, TensorElement) or name != scale.tensor:
        return _wrong(context, state, about)
    else:
        for letter, x in scale.at:
            form = data.form_at(own.at, plain(letter))
            assert form is not None
            _check_block(context, state, letter, x, form, f"{about}, of another block")
    return TensorElement(context.scaled(own.tensor), own.at)


def _unknown(context: WalkContext, state: WalkState, used: UnknownData) -> UnknownData:
    context.violated(state, "products", f"uses {used.reason}", certain=used.certain)
    return UnknownData(f"a sum with {used.reason}", used.certain)


def _wrong(context: WalkContext, state: WalkState, about: str) -> UnknownData:
    context.violated(state, "products", about)
    return UnknownData("a sum with a wrong product", certain=True)


def _check_block(
    context: WalkContext, state: WalkState, letter: str, x: Polynomial, own: Polynomial, about: str
) -> None:
    """That the scale at ``x`` is the factor of the element at ``own``, if that is inside: both are
    in one block, and x is inside, so that its factor is what was read."""
    context.ledger.count("products")
    if polynomials.same(x, own):
        return
    extent = context.extent(letter)
    outside = conditions.negated(
        conditions.all_of(conditions.not_negative(own), conditions.less(own, extent))
    )
    known = conditions.YES if _is_least(x, own) else conditions.less(x, extent)
    alike = conditions.all_of(_is_in_block(context, letter, x, own), known)
    claim, certain = conditions.any_of(outside, alike), _is_certain(context)
    context.claim(state, "products", claim, about, certain=certain)


def _is_in_block(context: WalkContext, letter: str, x: Polynomial, own: Polynomial) -> Condition:
    """That two elements are in one block."""
    one, other = (_block_of(context, each, block(letter)) for each in (x, own))
    return conditions.is_zero(polynomials.subtract(one, other))


def _is_least(x: Polynomial, own: Polynomial) -> bool:
    """Whether ``x <= own`` by a number."""
    apart = polynomials.subtract(own, x)
    return apart.concrete and bool(np.all(np.asarray(apart.constant) >= 0))


def _is_certain(context: WalkContext) -> bool:
    """Of a part of the sum loops leave little known."""
    return context.exact or context.partials is None


# ---- sums times scales ----


def promoted(
    context: WalkContext, state: WalkState, total: Data, factor: Data, sum_: Data
) -> Data | None:
    """``total * factor + sum_``: a partial sum times the factors of its block, added to the sum;
    None if it is something else."""
    factors = [*_factors(factor)]
    if not any(is_scale(context, each) for each in factors):
        return None
    if total == data.ZERO:
        return sum_  # no product, whatever it is multiplied by
    if any(isinstance(each, Pick) for each in (total, sum_)):
        raise Unsupported("a sum that is scaled, other ones under conditions")
    factors = [products.settled(context, state, each, used=True) for each in factors]
    for each in (total, *factors):
        if isinstance(each, UnknownData):
            return _unknown(context, state, each)
    if not isinstance(total, Total):
        return None
    if data.ZERO in factors:
        about = f"multiplies {data.shown(total, 0)} by 0"
        context.claim(state, "products", _is_empty(context, total), about)
        return sum_
    for each in factors:
        scaled = _scaled_total(context, state, total, each)
        if isinstance(scaled, UnknownData):
            return scaled
        total = scaled
    if sum_ == data.ZERO:
        return total
    if isinstance(sum_, UnknownData):
        return _unknown(context, state, sum_)
    if isinstance(sum_, Total):
        return products.joined(context, state, sum_, total)
    return _wrong(context, state, f"adds {data.shown(total, 0)} to {data.shown(sum_, 0)}")


def _factors(value: Data) -> Iterator[Data]:
    """The factors of a product."""
    if isinstance(value, Apply) and value.name == "*":
        for each in value.arguments:
            yield from _factors(each)
    else:
        yield value


def _scaled_total(
    context: WalkContext, state: WalkState, total: Total, scale: Data
) -> Total | UnknownData:
    """A sum times one scale: all of its products must be of one block, the scale's."""
    about = f"multiplies {data.shown(total, 0)} by {data.shown(scale, 0)}"
    left = context.scale_tensors - {*total.scaled_by}
    if not isinstance(scale, TensorElement) or scale.tensor not in left:
        return _wrong(context, state, about)
    if total.extra:
        raise Unsupported("a sum that is scaled before it has all products")
    for letter, x in scale.at:
        own = data.form_at(total.at, plain(letter))
        if own is None:
            _check_range(context, state, letter, x, total, f"{about}, of another block")
        else:
            _check_block(context, state, letter, x, own, f"{about}, of another block")
    return replace(total, scaled_by=tuple(sorted((*total.scaled_by, scale.tensor))))


def _is_empty(context: WalkContext, total: Total) -> Condition:
    """That a sum has no product of elements that are inside."""
    (letter,) = context.contracted
    outside = [
        conditions.negated(
            conditions.all_of(conditions.not_negative(x), conditions.less(x, context.extent(own)))
        )
        for own, x in total.at
    ]
    none = conditions.at_least(total.low, total.high)
    return conditions.any_of(none, conditions.at_least(total.low, context.extent(letter)), *outside)


def _check_range(
    context: WalkContext, state: WalkState, letter: str, x: Polynomial, total: Total, about: str
) -> None:
    """That the products of a sum are all of the block of ``x``: its first one and its last one
    are, or what is outside, and x is inside if the first one is."""
    context.ledger.count("products")
    extent, last = context.extent(letter), polynomials.subtract(total.high, integers.ONE)
    first_is = _is_in_block(context, letter, x, total.low)
    last_is = _is_in_block(context, letter, x, last)
    if last_is is not conditions.YES:
        size = block(letter)
        begin = polynomials.scale(_block_of(context, x, size), size)
        end = polynomials.add(begin, polynomials.fixed(size))
        last_is = conditions.any_of(last_is, conditions.at_least(end, extent))
    known = conditions.YES if _is_least(x, total.low) else conditions.less(x, extent)
    alike = conditions.all_of(first_is, last_is, known)
    claim = conditions.any_of(_is_empty(context, total), alike)
    context.claim(state, "products", claim, about, certain=_is_certain(context))


# ---- scales in shared memory ----


def element_index(index: Expr, letter: str) -> Expr:
    """An index of a box along a letter, as that of an element: block ``x / size`` has x in it, and
    block i begins with ``i * size``."""
    size = block(letter)
    match index:
        case Binary("/", x, Int(divisor)) if divisor == size:
            return x
        case _:
            return index if size == 1 else Binary("*", index, Int(size))
