"""Partial sums that are added: one sum over the ranges of both."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from gemmgen.prove import (
    conditions,
    data,
    polynomials,
    term_totals,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import (
    Data,
    Pair,
    TermTotals,
    Total,
    UnknownData,
)
from gemmgen.prove.products import active, wrong
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext


def joined(
    context: WalkContext,
    state: WalkState,
    left: Total | TermTotals,
    right: Total | TermTotals | UnknownData,
) -> Data:
    """``left + right``: one sum, if the second begins where the first one ends."""
    if isinstance(right, UnknownData):
        context.violated(state, "products", f"adds {right.reason}", certain=right.certain)
        return UnknownData(f"a sum with {right.reason}", right.certain)
    if isinstance(left, Total) and isinstance(right, Total):
        return _joined_totals(context, state, left, right)
    if any(isinstance(each, TermTotals) and each.scales for each in (left, right)):
        there, here = (data.shown(each, 0) for each in (right, left))
        return wrong(context, state, f"adds {there} to {here}")
    own, others = dict(term_totals.totals_of(left) or ()), dict(term_totals.totals_of(right) or ())
    found: list[tuple[Pair, Total]] = []
    for pair in own:
        one = _joined_totals(context, state, own[pair], others[pair]) if pair in others else None
        if pair is None or not isinstance(one, Total) or own.keys() != others.keys():
            there, here = (data.shown(each, 0) for each in (right, left))
            return one or wrong(context, state, f"adds {there} to {here}")
        found.append((pair, one))
    return TermTotals(tuple(found))


def _joined_totals(context: WalkContext, state: WalkState, left: Total, right: Total) -> Data:
    """One sum over both ranges, in the order in which they follow each other.

    A range that ends before it begins has no index, so neither may do that where they meet.
    """
    if state.mask is not None and not data.same_place(left.at, right.at):
        each = partial(data.taken, places=active(state.mask))  # others' numbers may be anything
        left, right = cast(Total, each(left)), cast(Total, each(right))
    there, here = (data.shown(each, 0) for each in (right, left))
    if not data.same_place(left.at, right.at):
        return wrong(context, state, f"adds {there} to {here}")
    if left.scaled_by != right.scaled_by:
        return wrong(context, state, f"adds {there} to {here}, which has other scales")
    about = f"adds {there} to {here}, which does not end where it begins"
    if left.extra or right.extra:
        return wrong(context, state, about)
    for first, second in ((left, right), (right, left)):
        if conditions.at_least(first.low, first.high) is conditions.YES:
            return second
    orders = [(left, right), (right, left)]
    claims = [_follows(first, second) for first, second in orders]
    number = 0 if _is_decided(context, state, claims[0]) else 1
    if number and not _is_decided(context, state, claims[1]):
        number = 0
    (first, second), claim = orders[number], claims[number]
    context.claim(state, "products", claim, about, certain=context.exact)
    return replace(first, high=second.high)


def _is_decided(context: WalkContext, state: WalkState, claim: Condition) -> bool:
    given = tuple(map(conditions.signature, state.path))
    key = ("joined", given, conditions.signature(claim))
    return context.theory.decided(key, state.path, claim)


def _follows(first: Total, second: Total) -> Condition:
    """Whether both sums are one from the first's begin to the second's end: the second one begins
    where the first one ends, or has no index and the same end."""
    adjacent = conditions.is_zero(polynomials.subtract(first.high, second.low))
    ordered = (
        conditions.at_least(first.high, first.low),
        conditions.at_least(second.high, second.low),
    )
    same_end = conditions.is_zero(polynomials.subtract(first.high, second.high))
    empty = conditions.all_of(conditions.at_least(second.low, second.high), same_end)
    return conditions.any_of(conditions.all_of(adjacent, *ordered), empty)
