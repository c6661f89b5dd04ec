"""What holds before each trip of a loop of unknown length.

Trips are walked from the loop's entry.  Numbers that differ between trip r + P and trip r + 2P are
taken to grow by as much in every P trips, P being the period of what the loop carries (the stages
of a ring); that is a guess.  It becomes an invariant by induction: what does not follow from the
entry, or from one trip to the next, is forgotten, until all that is left follows.

Over 300 lines: the guess, and what is forgotten of it, for each kind of value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import (
    conditions,
    data,
    polynomials,
    shared_state,
    term_totals,
    zero_outside,
)
from gemmgen.prove.conditions import ChosenInteger, Condition
from gemmgen.prove.data import Data, Number, Pick, TensorElement, TermTotals, Total, UnknownData
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.shared_state import NEVER, NONE, Cells
from gemmgen.prove.state import Value, WalkState
from gemmgen.prove.walk_context import WalkContext

CLAIMED = " as claimed"
CHANGES = UnknownData("a value that differs from trip to trip in no regular way")
Change = Callable[[Polynomial], Polynomial]


def grows_regularly(heads: list[WalkState], period: int) -> bool:
    """Whether the integers that are carried grow alike in each of the first trips."""
    for key in heads[0].slots:
        values = [head.slots[key] for head in heads[: 3 * period]]
        own = [value for value in values if isinstance(value, Polynomial)]
        if len(own) != len(values):
            continue
        steps = [polynomials.subtract(own[i + period], own[i]) for i in range(2 * period)]
        if not all(polynomials.same(steps[0], step) for step in steps[1:]):
            return False
    return True


def guessed(
    context: WalkContext, heads: list[WalkState], r: int, period: int, trip: Polynomial
) -> WalkState:
    """The state before trip ``trip``, which is ``r`` modulo the period."""
    since = polynomials.subtract(trip, polynomials.fixed(r + period))
    return regular(context, heads[r + period], heads[r + 2 * period], period, since)


def regular(
    context: WalkContext, first: WalkState, second: WalkState, period: int, since: Polynomial
) -> WalkState:
    """The state ``since`` trips after ``first``, ``second`` being that after a period."""

    def grown(x: Polynomial, y: Polynomial) -> Polynomial | None:
        step = polynomials.subtract(y, x)
        if any(np.any(np.asarray(value) % period != 0) for value in step.terms.values()):
            return None
        each = Polynomial({monomial: value // period for monomial, value in step.terms.items()})
        return polynomials.add(x, polynomials.multiply(each, since))

    return _grown_state(context, first, second, grown)


def between(
    context: WalkContext, first: WalkState, second: WalkState, rounds: Polynomial
) -> WalkState:
    """The state after ``rounds`` rounds from ``first`` on, ``second`` being that after one."""

    def grown(x: Polynomial, y: Polynomial) -> Polynomial | None:
        step = polynomials.subtract(y, x)
        return polynomials.add(x, polynomials.multiply(step, rounds))

    return _grown_state(context, first, second, grown)


Growth = Callable[[Polynomial, Polynomial], Polynomial | None]


def _grown_state(
    context: WalkContext, first: WalkState, second: WalkState, grown: Growth
) -> WalkState:
    found = WalkState(
        {
            name: _grown_cells(context, own, second.cells[name], grown)
            for name, own in first.cells.items()
        },
        path=first.path,
    )
    for key, value in first.slots.items():
        if key in second.slots:
            found.slots[key] = _grown_value(value, second.slots[key], grown)
    for place, value in first.registers.items():
        other = second.registers.get(place)
        found.registers[place] = CHANGES if other is None else _grown(value, other, grown)
    if first.clocks is not None and first.barriers is not None and second.barriers is not None:
        found.multiplying = dict(first.multiplying)
        found.clocks, found.barriers = first.clocks.copy(), first.barriers.copy()
        pairs = zip(first.barriers.guards, second.barriers.guards, strict=True)
        found.barriers.guards = [_grown(one, two, grown) for one, two in pairs]
    return found


def _grown_value(
    x: Value, y: Value, grown: Callable[[Polynomial, Polynomial], Polynomial | None]
) -> Value:
    if isinstance(x, Polynomial) and isinstance(y, Polynomial):
        found = grown(x, y)
        return CHANGES if found is None else found
    if x is y:
        return x
    if _is_data(x) and _is_data(y):
        return _grown(x, y, grown)  # type: ignore[arg-type]  # narrowed by the function
    return CHANGES


def _is_data(value: object) -> bool:
    return not isinstance(value, Polynomial | ChosenInteger) and not isinstance(
        value, conditions.Truth | conditions.Flag
    )


def _grown(x: Data, y: Data, grown: Callable[[Polynomial, Polynomial], Polynomial | None]) -> Data:
    if x is y:
        return x
    if data.skeleton(x) != data.skeleton(y):
        return CHANGES
    pairs = [grown(a, b) for a, b in zip(data.forms_of(x), data.forms_of(y), strict=True)]
    if any(one is None for one in pairs):
        return CHANGES
    left = iter(pairs)
    return data.with_forms(x, lambda form: next(left) or form)


def _grown_cells(
    context: WalkContext,
    x: Cells,
    y: Cells,
    grown: Callable[[Polynomial, Polynomial], Polynomial | None],
) -> Cells:
    found = x.copy()
    for first, second, where in shared_state.by_events(x.event, y.event):
        if first == NONE or second == NONE:
            value: Data = CHANGES
        else:
            one = data.taken(context.events.values[first], x.place[where])
            two = data.taken(context.events.values[second], y.place[where])
            value = _grown(one, two, grown)
        found.event[where] = context.events.add(value)
        found.place[where] = np.arange(where.size)
    shared_state.join(found, y)
    return found


def weaken(context: WalkContext, known: WalkState, other: WalkState, change: Change) -> bool:
    """Forgets what ``known``, changed by ``change``, claims of ``other`` and is not so; whether it
    forgot anything.  What it claims with a symbol of ``freed``, it claims of the value that the
    symbol's variable has in ``other``."""
    forgot = False
    change = _with_values(context, known, other, change)
    for key, value in known.slots.items():
        found = other.slots.get(key)
        if not _implied_value(found, value, change) and not (
            _is_total(value) and _is_empty(context, other, found, value, change)
        ):
            known.slots[key] = _any(context, known, key, value, other.slots.get(key))
            forgot = True
    for place, value in known.registers.items():
        found = other.registers.get(place)
        if value is CHANGES or _implied(found, value, change):
            continue
        if _is_empty(context, other, found, value, change):
            continue
        claimed = data.with_forms(value, change)
        if found is None or not zero_outside.are_equal(context, other.path, claimed, found):
            known.registers[place] = _in_part(found, value, change)
            forgot = True
    if known.barriers is not None and other.barriers is not None:
        for i, guard in enumerate(known.barriers.guards):
            if guard is not CHANGES and not _implied(other.barriers.guards[i], guard, change):
                known.barriers.guards[i] = CHANGES
                forgot = True
    for name, cells in known.cells.items():
        forgot |= _weaken_cells(context, cells, other.cells[name], change, other.path)
        forgot |= shared_state.join(cells, other.cells[name])
    return forgot


def _with_values(
    context: WalkContext, known: WalkState, other: WalkState, change: Change
) -> Change:
    """``change``, then the values that the variables of ``known.freed`` have in ``other``."""
    values: dict[str, Polynomial] = {}
    for name, key in known.freed.items():
        own, ends = other.slots.get(key), context.free[name]
        if isinstance(own, Polynomial) and own.uniform:
            number = own.number()
            if ends is None or (number is not None and ends[0] <= number <= ends[1]):
                values[name] = own

    def changed(form: Polynomial) -> Polynomial:
        form = change(form)
        for name in values:  # first renamed, since a value may have another one of them
            form = polynomials.substituted(form, name, polynomials.symbol(name + CLAIMED))
        for name, own in values.items():
            form = polynomials.substituted(form, name + CLAIMED, own)
        return form

    return changed if values else change


def _any(
    context: WalkContext, known: WalkState, key: str, value: Value, other: Value | None
) -> Value:
    """A value that nothing is known of: an integer that all threads share stays one."""
    if (
        isinstance(value, Polynomial)
        and isinstance(other, Polynomial)
        and value.uniform
        and other.uniform
    ):
        own = context.theory.symbol(key.partition("@")[0])
        (name,) = own.symbols
        low, high = value.number(), other.number()
        context.free[name] = None
        known.freed[name] = key
        if low is not None and high is not None:
            least, most = context.free[name] = min(low, high), max(low, high)
            context.theory.known(
                own,
                conditions.at_least(own, polynomials.fixed(least)),
                conditions.at_least(polynomials.fixed(most), own),
            )
        return own
    return CHANGES


def _implied_value(other: Value | None, value: Value, change: Change) -> bool:
    if value is CHANGES:
        return True
    if isinstance(value, Polynomial):
        return isinstance(other, Polynomial) and polynomials.same(other, change(value))
    if other is None or not _is_data(value) or not _is_data(other):
        return False
    return _implied(other, value, change)  # type: ignore[arg-type]  # data, by the line above


def _implied(other: Data | None, value: Data, change: Change) -> bool:
    """Whether ``other`` is what ``value`` claims; no sum is the sum over no index."""
    if value is CHANGES:
        return True
    if other is None:
        return False
    claimed = data.with_forms(value, change)
    if isinstance(value, Pick) and isinstance(claimed, Pick):
        yes, no = _sides(other, claimed)
        if _implied(yes, value.yes, change) and _implied(no, value.no, change):
            return True
    totals = term_totals.totals_of(claimed)
    if isinstance(other, Number) and other.value == 0.0 and totals is not None:
        return all(polynomials.same(own.low, own.high) and not own.extra for _, own in totals)
    return data.same(claimed, other)


def _is_total(value: Value) -> TypeGuard[Total | TermTotals]:
    return isinstance(value, Total | TermTotals)


def _sides(other: Data, claimed: Pick) -> tuple[Data, Data]:
    """What ``other`` is where the condition of ``claimed`` holds, and where it does not."""
    if isinstance(other, Pick):
        own, its = (conditions.signature(each.condition) for each in (other, claimed))
        if own == its:
            return other.yes, other.no
    return other, other


def _in_part(other: Data | None, value: Data, change: Change) -> Data:
    """``value`` without the sides that are not implied by ``other``."""
    claimed = data.with_forms(value, change)
    if other is None or not (isinstance(value, Pick) and isinstance(claimed, Pick)):
        return CHANGES
    found: list[Data] = []
    for there, side in zip(_sides(other, claimed), (value.yes, value.no), strict=True):
        is_so = _implied(there, side, change)
        found.append(side if is_so else _in_part(there, side, change))
    return CHANGES if found[0] is found[1] is CHANGES else Pick(value.condition, *found)


def _is_empty(
    context: WalkContext, state: WalkState, other: Value | None, value: Data, change: Change
) -> bool:
    """Whether ``value`` claims a sum over no index where ``other``, of ``state``, is none."""
    claimed = data.with_forms(value, change)
    totals = term_totals.totals_of(claimed)
    if other != data.ZERO or totals is None:
        return False
    for _, own in totals:
        if own.extra or own.high.concrete:
            return False
        key = ("empty", tuple(map(id, state.path)), polynomials.signature(own.high))
        claim = conditions.at_least(own.low, own.high)
        if not context.theory.decided(key, state.path, claim):
            return False
    return True


def _weaken_cells(
    context: WalkContext, known: Cells, other: Cells, change: Change, path: tuple[Condition, ...]
) -> bool:
    """The same for the elements of an array, where ``path`` holds."""
    forgot = False
    lost: Ints | None = None
    for mine, theirs, where in shared_state.by_events(known.event, other.event):
        value = NEVER if mine == NONE else context.events.values[mine]
        if value is CHANGES or mine == theirs == NONE:
            continue
        claimed = data.with_forms(data.taken(value, known.place[where]), change)
        found, apart = None, np.asarray(True)
        if theirs != NONE:
            found = data.taken(context.events.values[theirs], other.place[where])
            apart = np.asarray(_apart(claimed, found))
        if not np.any(apart):
            continue
        wrong = where[apart] if apart.ndim else where
        if found is not None and isinstance(value, Pick | TensorElement):
            found = data.taken(context.events.values[theirs], other.place[wrong])
            own = data.taken(value, known.place[wrong])
            if zero_outside.are_equal(context, path, data.with_forms(own, change), found):
                continue
            left = _in_part(found, own, change)
            if left is not CHANGES:
                known.event[wrong] = context.events.add(left)
                known.place[wrong] = np.arange(wrong.size)
                forgot = True
                continue
        forgot = True
        if lost is None:
            lost = np.asarray(context.events.add(CHANGES))
        known.event[wrong] = lost
        known.place[wrong] = 0
    return forgot


def _apart(claimed: Data, found: Data) -> Bools | bool:
    """In which elements two values differ: True for all."""
    if claimed is CHANGES:
        return False
    if isinstance(claimed, Pick):
        yes, no = _sides(found, claimed)
        apart = _apart(claimed.yes, yes) | _apart(claimed.no, no)
        if not np.any(apart):
            return False
    if data.skeleton(claimed) != data.skeleton(found):
        return True
    apart: Bools | bool = False
    for x, y in zip(data.forms_of(claimed), data.forms_of(found), strict=True):
        apart = apart | polynomials.differing(x, y)
    return apart
