"""Products with scales of blocks: each element, or each sum of products, times its own factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.numerics.operators import Ints
from gemmgen.prove import (
    block_scales,
    condition_queries,
    conditions,
    data,
    integers,
    joined_totals,
    picked_values,
    polynomials,
    settled_values,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import Apply, Data, Pick, Place, TensorElement, Total, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext


@record
class _Scaled:
    """What is multiplied by a scale: elements, or totals of their products, at ``at``, where the
    contracted index is from ``low`` to ``high`` (exclusive).

    A scale can be any number where none of these elements is inside: there ``inside`` does not
    hold, and they are zero.
    """

    at: Place
    low: Polynomial
    high: Polynomial
    inside: tuple[Condition, ...]
    value: Data

    def taken(self, places: Ints) -> _Scaled:
        """The same of the threads at ``places``."""
        each = partial(polynomials.taken, places=places)
        at = tuple((letter, each(form)) for letter, form in self.at)
        inside = tuple(conditions.with_forms(one, each) for one in self.inside)
        return _Scaled(at, each(self.low), each(self.high), inside, self.value)


def product(context: WalkContext, state: WalkState, left: Data, right: Data) -> Data | None:
    """An element of an operand times the factor of its block; None if it is another product."""
    for own, scale in ((left, right), (right, left)):
        if _is_element(context, own) and (
            block_scales.is_scale(context, scale) or scale == data.ZERO
        ):
            return _scaled_element(context, state, own, scale)
    return None


def _is_element(context: WalkContext, value: Data) -> bool:
    if isinstance(value, Pick):
        return _is_element(context, value.yes) or _is_element(context, value.no)
    return isinstance(value, TensorElement) and value.tensor in context.base


def _scaled_element(context: WalkContext, state: WalkState, own: Data, scale: Data) -> Data:
    own = settled_values.settled(context, state, own, used=True)
    if isinstance(own, UnknownData):
        return _unknown(context, state, own)
    if own == data.ZERO:
        return own
    if not isinstance(own, TensorElement) or own.term is not None:
        return _wrong(context, state, _about(own, scale))
    name = context.block_scales.get(own.tensor)
    if name is None:
        return scale if scale == data.ZERO else _wrong(context, state, _about(own, scale))
    k = data.form_at(own.at, context.contracted[0])
    assert k is not None
    inside = settled_values.inside_tensor(context, own)
    parts = inside.parts if isinstance(inside, conditions.All) else (inside,)
    scaled = _Scaled(own.at, k, polynomials.add(k, integers.ONE), parts, own)
    if not _is_factor(context, state, scale, name, scaled):
        return _wrong(context, state, _about(own, scale))
    return TensorElement(context.scaled(own.tensor), own.at)


def promoted(
    context: WalkContext, state: WalkState, total: Data, factor: Data, sum_: Data
) -> Data | None:
    """``total * factor + sum_``: a partial sum times the factors of its block, added to the sum;
    None if it is something else."""
    factors = [*_factors(factor)]
    if not any(block_scales.is_scale(context, each) for each in factors):
        return None
    if total == data.ZERO:
        return sum_  # no product, whatever it is multiplied by
    if any(isinstance(each, Pick) for each in (total, sum_)):
        raise Unsupported("a sum that is scaled, other ones under conditions")
    for each in (total, *factors, sum_):
        if isinstance(each, UnknownData):
            return _unknown(context, state, each)
    if not isinstance(total, Total):
        return None
    if data.ZERO in factors:
        none = conditions.at_least(total.low, context.extent(context.contracted[0]))
        context.claim(state, "products", none, f"multiplies {data.shown(total, 0)} by 0")
        return sum_
    for each in factors:
        scaled = _scaled_total(context, state, total, each)
        if isinstance(scaled, UnknownData):
            return scaled
        total = scaled
    if sum_ == data.ZERO:
        return total
    if isinstance(sum_, Total):
        return joined_totals.joined(context, state, sum_, total)
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
    if total.extra:
        raise Unsupported("a sum that is scaled before it has all products")
    (letter,) = context.contracted
    inside = [conditions.less(total.low, total.high)]
    for name, form in (*total.at, (letter, total.low)):
        inside.append(conditions.less(form, context.extent(name)))
        if name != letter:
            inside.append(conditions.not_negative(form))
    scaled = _Scaled(total.at, total.low, total.high, tuple(inside), total)
    for name in sorted(context.scale_tensors - {*total.scaled_by}):
        if _names(context, scale) <= {name} and _is_factor(context, state, scale, name, scaled):
            return replace(total, scaled_by=tuple(sorted((*total.scaled_by, name))))
    return _wrong(context, state, _about(total, scale))


def _about(own: Data, scale: Data) -> str:
    return f"multiplies {data.shown(own, 0)} by {data.shown(scale, 0)}"


def _names(context: WalkContext, scale: Data) -> set[str]:
    """The tensors that a number may be an element of."""
    found = picked_values.leaves(scale)
    return {leaf.tensor for _, leaf in found if isinstance(leaf, TensorElement)}


def _is_factor(
    context: WalkContext, state: WalkState, scale: Data, name: str, scaled: _Scaled
) -> bool:
    """Claims that ``scale`` is the factor in ``name`` of what it multiplies, whatever the
    conditions are that it depends on; False if it is another number."""
    if state.mask is not None:  # numbers of other threads may be anything
        doing = np.where(state.mask, context.every, int(np.argmax(state.mask)))
        scale, scaled = data.taken(scale, doing), scaled.taken(doing)
    for path, leaf in picked_values.leaves(scale):
        context.ledger.count("products")
        if isinstance(leaf, TensorElement) and leaf.tensor == name:
            for letter, x in leaf.at:
                alike = _is_in_block(context, letter, x, scaled)
                if alike is not conditions.YES:
                    what = f"{_about(scaled.value, leaf)}, of another block"
                    _claim(context, state, alike, path, scaled, what)
        elif leaf == data.ZERO or isinstance(leaf, UnknownData):
            # what contradicts the conditions for an element inside needs no claim
            other = (conditions.negated(one) for one in path)
            if not any(condition_queries.is_stated(scaled.inside, one) for one in other):
                what, certain = (
                    f"{_about(scaled.value, leaf)} in place of a scale",
                    leaf == data.ZERO,
                )
                _claim(context, state, conditions.NO, path, scaled, what, certain)
        else:
            return False
    return True


def _claim(
    context: WalkContext,
    state: WalkState,
    claim: Condition,
    path: tuple[Condition, ...],
    scaled: _Scaled,
    about: str,
    certain: bool = True,
) -> None:
    """A claim of elements that are inside; of a part of the sum loops leave little known."""
    certain &= context.exact or context.partials is None
    given = (*path, *scaled.inside)
    context.claim(state, "products", claim, about, path=given, certain=certain)


def _is_in_block(context: WalkContext, letter: str, x: Polynomial, scaled: _Scaled) -> Condition:
    """That all elements that are multiplied are in the block of element ``x``."""
    size, own = block(letter), data.form_at(scaled.at, plain(letter))
    first = scaled.low if own is None else own
    if polynomials.same(x, first) and (own is not None or size == 1):
        return conditions.YES
    number = block_scales.block_of(context, x, size)
    alike = conditions.is_zero(
        polynomials.subtract(number, block_scales.block_of(context, first, size))
    )
    if own is not None:
        return alike
    last = block_scales.block_of(context, polynomials.subtract(scaled.high, integers.ONE), size)
    until = conditions.is_zero(polynomials.subtract(number, last))
    if until is not conditions.YES:  # a block may be longer than what is left of the extent
        end = polynomials.scale(polynomials.add(number, integers.ONE), size)
        until = conditions.any_of(until, conditions.at_least(end, context.extent(letter)))
    return conditions.all_of(alike, until)


def _unknown(context: WalkContext, state: WalkState, used: UnknownData) -> UnknownData:
    context.violated(state, "products", f"uses {used.reason}", certain=used.certain)
    return UnknownData(f"a sum with {used.reason}", used.certain)


def _wrong(context: WalkContext, state: WalkState, about: str) -> UnknownData:
    context.violated(state, "products", about)
    return UnknownData("a sum with a wrong product", certain=True)
