"""What is stored in an element of C is made of its own sum and of the epilogue's own elements."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from gemmgen.ir.problem import Problem
from gemmgen.prove import (
    condition_queries,
    conditions,
    data,
    picked_values,
    polynomials,
    term_totals,
)
from gemmgen.prove.data import (
    Apply,
    Data,
    IndexNumber,
    Pick,
    ScalarArgument,
    TensorElement,
    TermTotals,
    Total,
    UnknownData,
)
from gemmgen.prove.goals import Goal, KnownViolation
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.settled_values import settled
from gemmgen.prove.state import WalkState
from gemmgen.prove.stored_formula import EpilogueFormula
from gemmgen.prove.walk_context import OutputStore, WalkContext


def check(context: WalkContext, problem: Problem) -> None:
    """Adds the goals for all stores to C to the facts ``products`` and ``formula``."""
    formula = EpilogueFormula(context, problem)
    for store in map(_of_its_threads, (*context.stores, *context.later)):
        context.where = store.where
        flags = sorted(picked_values.flags_of(store.value))
        for sides in product((False, True), repeat=len(flags)):
            chosen = dict(zip(flags, sides, strict=True))
            stored = _Stored(context, store)
            value = stored.resolved(picked_values.with_flags(store.value, chosen))
            if not stored.totals and stored.is_empty():
                formula.check(store, value, chosen, empty=True)
            elif not stored.totals:
                shown = data.shown(store.value, 0)
                stored.violate(f"what is stored has no sum: {shown}")
            elif not stored.wrong:
                formula.check(store, value, chosen)


def _of_its_threads(store: OutputStore) -> OutputStore:
    """``store`` with the numbers of a thread that does it in place of those of threads that do not,
    which may be anything."""
    if store.mask is None:
        return store
    doing = np.where(store.mask, np.arange(store.mask.size), int(np.argmax(store.mask)))
    each = partial(polynomials.taken, places=doing)
    at = tuple((letter, each(form)) for letter, form in store.at)
    path = tuple(conditions.with_forms(one, each) for one in store.path)
    return OutputStore(at, data.taken(store.value, doing), path, store.mask, store.where)


class _Stored:
    """One store to C; ``totals`` counts the sums in it.  Where a part of its value is not known,
    nothing is certain of it."""

    def __init__(self, context: WalkContext, store: OutputStore):
        self.context, self.store = context, store
        self.state = WalkState({}, path=store.path, mask=store.mask)
        self.totals, self.wrong = 0, False
        leaves = (x for x in picked_values.inside(store.value) if isinstance(x, UnknownData))
        self.is_known = all(leaf.certain for leaf in leaves)

    def violate(self, about: str, thread: int = 0, certain: bool = True) -> None:
        self.wrong = True
        sure = certain and self.context.exact and self.is_known
        own = KnownViolation("products", about, self.store.path, thread, self.store.where, sure)
        self.context.ledger.violated(own)

    def is_empty(self) -> bool:
        """Whether there is no product where this is stored."""
        extent = self.context.extent(self.context.contracted[0])
        none = conditions.at_least(polynomials.ZERO, extent)
        if condition_queries.is_stated(self.state.path, none):
            return True
        return self.context.theory.holds(self.state.path, none, 1.0)

    def resolved(self, value: Data) -> Data:
        """``value`` without the sides of choices that the store's path rules out."""
        value = settled(self.context, self.state, value)
        match value:
            case Pick(condition, yes, no):
                if self._never(condition):
                    return self.resolved(no)
                if self._never(conditions.negated(condition)):
                    return self.resolved(yes)
                return data.pick(condition, self.resolved(yes), self.resolved(no))
            case Apply(name, arguments):
                return Apply(name, tuple(map(self.resolved, arguments)))
            case Total() | TermTotals():
                self._totals(value)
            case IndexNumber(form):
                return self._letter(form)
            case TensorElement():
                self._same_place(f"an element of {value.tensor}", value.at)
            case UnknownData(reason, certain):
                self.violate(f"what is stored has {reason}", certain=certain)
            case _:
                pass
        return value

    def _letter(self, form: Polynomial) -> Data:
        """An index of the element of C, by its letter."""
        for letter, own in self.store.at:
            if polynomials.same(form, own):
                return ScalarArgument(letter)
        self.violate("an index is used that is none of the element's own")
        return UnknownData("an index")

    def _never(self, condition: conditions.Condition) -> bool:
        claim = conditions.negated(condition)
        if condition_queries.is_stated(self.state.path, claim):
            return True
        if condition_queries.is_stated(self.state.path, condition):
            return False
        return self.context.theory.holds(self.state.path, claim, 1.0)

    def _totals(self, value: Total | TermTotals) -> None:
        self.totals += 1
        totals = dict(term_totals.totals_of(value) or ())
        lacking = [pair for pair in self.context.pairs if None not in totals and pair not in totals]
        if lacking:
            self.violate(f"the sum lacks the products of terms {lacking[0]}")
        for own in totals.values():
            self._total(own)
        if None not in totals:
            self._scales(value.scales if isinstance(value, TermTotals) else ())

    def _scales(self, scales: tuple[TensorElement, ...]) -> None:
        """That the scales of the element's row and column are undone, once each; without a product
        there is nothing to scale."""
        for name in sorted(self.context.scales):
            own = [scale for scale in scales if scale.tensor == name]
            if len(own) > 1:
                self.violate(f"the sum is multiplied by {name} {len(own)} times")
            for scale in own:
                self._same_place(f"a scale of {name}", scale.at)
            if not own:
                self._lacks(name)

    def _lacks(self, name: str) -> None:
        """That nothing is accumulated, since the total is not multiplied by some scales."""
        extent = self.context.extent(self.context.contracted[0])
        none = conditions.at_least(polynomials.ZERO, extent)
        self._goal(none, f"the sum is not multiplied by {name}")

    def _total(self, value: Total) -> None:
        self._same_place("a sum", value.at)
        for name in sorted(self.context.scale_tensors - {*value.scaled_by}):
            self._lacks(name)
        if value.extra:
            self.violate(f"the sum lacks products before k = {polynomials.text(value.extra[0])}")
        extent = self.context.extent(self.context.contracted[0])
        self._goal(conditions.at_least(polynomials.ZERO, value.low), "a sum begins after k = 0")
        self._goal(conditions.at_least(value.high, extent), "a sum ends before the last k")

    def _same_place(self, what: str, at: data.Place) -> None:
        """That the indices are those of the element of C, by letter."""
        for letter, own in at:
            there = data.form_at(self.store.at, letter)
            if there is None:
                self.violate(f"{what} with an index {letter}, which C does not have")
            elif not polynomials.same(own, there):
                apart = polynomials.differing(own, there)
                if self.store.mask is not None:
                    apart = apart & self.store.mask
                thread = data.first_thread(apart)
                shown = data.shown(TensorElement(self.context.output.name, self.store.at), thread)
                own_place = data.shown(TensorElement("", at), thread)
                self.violate(f"{what} for {own_place} is stored in {shown}", thread)

    def _goal(self, claim: conditions.Condition, about: str) -> None:
        address = (self.context.output.name, tuple(form for _, form in self.store.at))
        path, mask, where = self.state.path, self.store.mask, self.store.where
        certain = self.is_known and (self.context.exact or self.context.partials is None)
        goal = Goal("products", claim, path, mask, where, about, address, certain)
        self.context.ledger.goal(goal)
