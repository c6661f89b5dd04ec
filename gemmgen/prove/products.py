"""Multiply-adds: which elements they multiply, and which products an accumulator has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import (
    conditions,
    data,
    picked_values,
    polynomials,
)
from gemmgen.prove.data import (
    Apply,
    Data,
    Number,
    Pair,
    Pick,
    Place,
    TensorElement,
    TermTotals,
    Total,
    UnknownData,
)
from gemmgen.prove.integers import ONE
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.settled_values import inside_tensor, settled
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext

WHOLE = -1


def multiply_add(
    context: WalkContext, state: WalkState, left: Data, right: Data, sum_: Data, count: int = 1
) -> Data:
    """``left * right + sum_``: a longer sum, if these are elements of the two tensors whose
    products are summed.  They are the first of ``count`` elements along k each, whose products are
    all added."""
    left, right = (settled(context, state, each, used=True) for each in (left, right))
    if not (_is_operand(context, left) and _is_operand(context, right)):
        return Apply("fmaf", (left, right, sum_))
    for each in (left, right, sum_):
        if isinstance(each, UnknownData):
            context.violated(state, "products", f"uses {each.reason}", certain=each.certain)
            return UnknownData(f"a sum with {each.reason}", each.certain)
    if left == data.ZERO or right == data.ZERO:
        return _with_zero(context, state, right if left == data.ZERO else left, sum_)
    if not (isinstance(left, TensorElement) and isinstance(right, TensorElement)):
        return wrong(context, state, f"multiplies {data.shown(left, 0)} by {data.shown(right, 0)}")
    names = [context.base[each.tensor] for each in (left, right)]
    if set(names) != set(context.factors) or names[0] == names[1]:
        return wrong(context, state, f"multiplies {left.tensor} by {right.tensor}", left, right)
    pair = _pair(context, left, right)
    if pair not in (None, *context.pairs):
        return wrong(context, state, f"multiplies {data.shown(left, 0)} by {data.shown(right, 0)}")
    at, step = _joined(context, state, left, right)
    if step is None:
        return UnknownData("a sum with a wrong product", certain=True)
    count = _inside(context, step, count)
    if not count:
        return sum_  # both elements are outside, so that the product is 0
    if pair is None:
        scales = (context.scales_of(each.tensor) for each in (left, right))
        scaled_by = tuple(sorted(name for name in scales if name))
        return _longer(context, state, sum_, at, step, count, scaled_by)
    return _longer_of_terms(context, state, sum_, at, step, pair, count)


def _inside(context: WalkContext, step: Polynomial, count: int) -> int:
    """How many of ``count`` elements from ``step`` on are not known to be beyond the last k."""
    extent = context.extent(context.contracted[0])
    while count and _is_beyond(polynomials.add(step, polynomials.fixed(count - 1)), extent):
        count -= 1
    return count


def _is_beyond(step: Polynomial, extent: Polynomial) -> bool:
    return conditions.at_least(step, extent) is conditions.YES


def _pair(context: WalkContext, left: TensorElement, right: TensorElement) -> Pair | None:
    """The terms of A and B that are multiplied; None of whole elements.  A whole element is the
    term ``WHOLE`` of a pair, which no schedule has."""
    is_first = context.base[left.tensor] == context.factors[0]
    a, b = (left, right) if is_first else (right, left)
    if a.term is None and b.term is None:
        return None
    return (WHOLE if a.term is None else a.term), (WHOLE if b.term is None else b.term)


def _with_zero(context: WalkContext, state: WalkState, other: Data, sum_: Data) -> Data:
    """``sum_`` with the product of zero and ``other``: none, if that is outside the extent of the
    contracted index, where both operands are zero.

    Where an extent of C is a number (that of the contracted index, in a search for violations),
    zeros may be known to be those of a row outside; then it is not certain that a product lacks.
    """
    if isinstance(other, TensorElement):
        (letter,) = context.contracted
        own = data.form_at(other.at, letter)
        if own is None:
            return wrong(context, state, f"multiplies 0 by {other.tensor}")
        low = conditions.not_negative(own)
        outside = conditions.negated(
            conditions.all_of(low, conditions.less(own, context.extent(letter)))
        )
        about = "multiplies 0 by an element that is inside"
        certain = not any(context.extent(own).concrete for own in context.output.indices)
        context.claim(state, "products", outside, about, certain=certain)
    return sum_


def _is_operand(context: WalkContext, value: Data) -> bool:
    """Whether ``value`` may be an element of a factor: not a scalar of the epilogue."""
    if isinstance(value, TensorElement):
        return value.tensor in context.base
    return isinstance(value, UnknownData | Pick | Number) and not (
        isinstance(value, Pick) and any(isinstance(x, Apply) for x in picked_values.inside(value))
    )


def wrong(
    context: WalkContext, state: WalkState, about: str, *operands: TensorElement
) -> UnknownData:
    shown = " and ".join(data.shown(each, 0) for each in operands)
    inside = tuple(inside_tensor(context, each) for each in operands)  # outside, both are 0
    about = f"{about}{': ' + shown if shown else ''}"
    context.violated(state, "products", about, assumed=inside)
    return UnknownData("a sum with a wrong product", certain=True)


def _joined(
    context: WalkContext, state: WalkState, left: TensorElement, right: TensorElement
) -> tuple[Place, Polynomial | None]:
    """The element of C that a product belongs to, and its contracted index; None if the two
    operands have different ones."""
    found: dict[str, Polynomial] = {}
    for operand, other in ((left, right), (right, left)):
        for letter, own in operand.at:
            if letter in found and not polynomials.same(found[letter], own):
                apart = polynomials.differing(found[letter], own)
                context.check(
                    state,
                    "products",
                    apart,
                    f"multiplies elements with different {letter}: "
                    f"{data.shown(other, data.first_thread(apart))} by "
                    f"{data.shown(operand, data.first_thread(apart))}",
                )
                return (), None
            found[letter] = own
    context.ledger.count("products")
    (contracted,) = context.contracted
    at = tuple((letter, found[letter]) for letter in context.output.indices)
    return at, _of_its_threads(state, found[contracted])


def _of_its_threads(state: WalkState, step: Polynomial) -> Polynomial:
    """``step``, if it is the same in all threads that are here, as what it is in them: the numbers
    of other threads, which may be anything, do not matter."""
    if state.mask is None or step.uniform:
        return step
    own = polynomials.taken(step, active(state.mask))
    return own if own.uniform else step


def active(mask: Bools) -> Ints:
    """The number of each thread that is here; in place of another one that of the first."""
    return np.where(mask, np.arange(mask.size), int(np.argmax(mask)))


def _longer(
    context: WalkContext,
    state: WalkState,
    sum_: Data,
    at: Place,
    step: Polynomial,
    count: int,
    scaled_by: tuple[str, ...] = (),
) -> Data:
    if isinstance(sum_, Number) and sum_.value == 0.0:
        return Total(at, step, polynomials.add(step, polynomials.fixed(count)), (), scaled_by)
    if not isinstance(sum_, Total) or sum_.scaled_by != scaled_by:
        return wrong(context, state, f"adds a product to {data.shown(sum_, 0)}")
    if not data.same_place(sum_.at, at):
        shown = data.shown(TensorElement("C", at), 0)
        return wrong(context, state, f"adds a product for {shown} to {data.shown(sum_, 0)}")
    return _extended_by(context, state, sum_, step, count)


def _extended_by(
    context: WalkContext, state: WalkState, sum_: Total, step: Polynomial, count: int
) -> Data:
    """``sum_`` with the products of ``count`` values of k from ``step`` on."""
    if not sum_.extra and polynomials.same(step, sum_.high):
        return replace(sum_, high=polynomials.add(step, polynomials.fixed(count)))
    found: Data = sum_
    for k in range(count):
        if isinstance(found, Total):
            found = extended(context, state, found, polynomials.add(step, polynomials.fixed(k)))
    return found


def _longer_of_terms(
    context: WalkContext,
    state: WalkState,
    sum_: Data,
    at: Place,
    step: Polynomial,
    pair: Pair,
    count: int,
) -> Data:
    """The same for a product of terms: its pair has a sum of its own."""
    own = dict(sum_.totals) if isinstance(sum_, TermTotals) else {}
    done = isinstance(sum_, TermTotals) and sum_.scales
    if done or (not own and sum_ != data.ZERO):
        return wrong(context, state, f"adds a product of terms to {data.shown(sum_, 0)}")
    before: Data = own.get(pair, data.ZERO)
    if before == data.ZERO and own and not data.same_place(next(iter(own.values())).at, at):
        shown = data.shown(TensorElement("C", at), 0)
        return wrong(context, state, f"adds a product for {shown} to {data.shown(sum_, 0)}")
    after = _longer(context, state, before, at, step, count)
    if not isinstance(after, Total):
        return after
    return TermTotals(tuple(sorted({**own, pair: after}.items(), key=lambda each: each[0])))


def extended(context: WalkContext, state: WalkState, sum_: Total, step: Polynomial) -> Data:
    """``sum_`` with the product of one more ``k``; those out of order are kept until they fit."""
    for known in sum_.extra:
        if polynomials.same(known, step):
            return wrong(context, state, f"adds the product for k = {polynomials.text(step)} twice")
    inside = conditions.all_of(
        conditions.at_least(step, sum_.low), conditions.less(step, sum_.high)
    )
    if isinstance(inside, conditions.Truth) and data.np.any(inside.value):
        return wrong(context, state, f"adds the product for k = {polynomials.text(step)} twice")
    left, low, high = [*sum_.extra, step], sum_.low, sum_.high
    moved = True
    while moved:
        moved = False
        for one in left:
            if polynomials.same(one, high):
                high = polynomials.add(high, ONE)
            elif polynomials.same(polynomials.add(one, ONE), low):
                low = one
            else:
                continue
            left.remove(one)
            moved = True
            break
    return Total(sum_.at, low, high, tuple(left), sum_.scaled_by)
