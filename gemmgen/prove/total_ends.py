"""Where totals of accumulators end: they are named by the end of a loop, or by its next trip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmgen.prove import conditions, polynomials, term_totals
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import TermTotals, Total
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext


def complete(context: WalkContext, state: WalkState, stop: Polynomial) -> None:
    """Totals that go beyond the extent are totals over all of it: elements outside are zero.  One
    that ends where a loop does, at ``stop``, ends there by name."""
    if not context.contracted:
        return
    extent = context.extent(context.contracted[0])
    known: dict[object, bool] = {}

    def completed(value: Total) -> Total:
        if value.extra or polynomials.same(value.high, extent):
            return value
        key = polynomials.signature(value.high)
        if key not in known:
            claim = _alike(context, value.high, stop)
            known[key] = context.theory.ask(state.path, claim).status == "proved"
        return replace(value, high=stop) if known[key] else value

    _change(state, completed)


def before_next(context: WalkContext, state: WalkState, next_: Polynomial) -> None:
    """Totals that end at the smaller one of two numbers (an inner loop's end) end at ``next_``,
    where the next trip begins, if that is so or all elements between both are outside."""
    choices = context.theory.choices
    path = tuple(map(conditions.signature, state.path))

    def ended(value: Total) -> Total:
        if value.extra or not value.high.symbols & choices.keys():
            return value
        if polynomials.same(value.high, next_):
            return value
        claim = _alike(context, value.high, next_)
        key = ("ends", path, conditions.signature(claim))
        known = context.theory.decided(key, state.path, claim)
        return replace(value, high=next_) if known else value

    if context.contracted:
        _change(state, ended)


def _alike(context: WalkContext, high: Polynomial, end: Polynomial) -> Condition:
    """Whether totals that end at ``high`` or at ``end`` have the same products: there is none from
    the extent on."""
    extent = context.extent(context.contracted[0])
    beyond = conditions.all_of(conditions.at_least(high, extent), conditions.at_least(end, extent))
    return conditions.any_of(conditions.is_zero(polynomials.subtract(high, end)), beyond)


def _change(state: WalkState, function: Callable[[Total], Total]) -> None:
    """Changes the totals of a state."""
    for place, value in state.registers.items():
        state.registers[place] = term_totals.with_totals(value, function)
    for key, value in state.slots.items():
        if isinstance(value, Total | TermTotals):
            state.slots[key] = term_totals.with_totals(value, function)
