"""What is known of each symbol, and the questions to the solver that follow from it.

A question is over all threads at once: each vector becomes a variable within its range, and in
its residue class.  That loses how vectors depend on each other, so that an answer that something
is violated counts only once a thread is found that violates it; else the vectors' own combinations
are added, and the question is asked again.

Over 300 lines: symbols, their terms and the questions share one state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import product
from math import gcd
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import conditions, polynomials, solver
from gemmgen.prove.conditions import (
    All,
    AnyOf,
    Condition,
    Flag,
    IsZero,
    Multiple,
    Not,
    NotNegative,
    Truth,
)
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.questions import Questions
from gemmgen.prove.solver import Status, Term

ROUNDS = 3
SMALL = (40, 300, 5000)
"""Extents of a counterexample are at most these, if there is one of them."""


@record
class Judgment:
    """``proved``, or ``refuted`` with the values of symbols and a thread, or ``unknown``."""

    status: Status
    values: dict[str, int] = field(default_factory=dict[str, int])
    thread: int = 0
    seconds: float = 0.0
    queries: int = 1


class Theory:
    """The symbols of one kernel.  ``facts`` of a symbol are cheap to use, ``definitions`` all that
    is known; ``sizes`` are those whose values a counterexample keeps small.  ``permutations``: a
    symbol that is different for each value of a form, and has its range.  ``choices``: a symbol
    that is the first form where the condition holds, else the second one."""

    def __init__(self, threads: int, seconds: float, questions: Questions):
        self.threads, self.seconds, self.questions = threads, seconds, questions
        self.facts: dict[str, list[Condition]] = {}
        self.definitions: dict[str, list[Condition]] = {}
        self.multiples: dict[str, int] = {}
        self.limits: list[Polynomial] = []
        self.titles: dict[str, str] = {}
        self.samples, self.sizes = list[dict[str, int]](), list[str]()
        self.shared_names: dict[object, Polynomial] = {}
        self.permutations = dict[str, Polynomial]()
        self.choices = dict[str, tuple[Condition, Polynomial, Polynomial]]()
        self._decided: dict[object, tuple[bool, Sequence[Condition]]] = {}
        self._digits: dict[bytes, tuple[Term, Ints]] = {}
        self._used: dict[bytes, None] = {}
        self._made: dict[int, tuple[Condition, Term, tuple[bytes, ...]]] = {}

    # ---- symbols ----

    def symbol(
        self, name: str, facts: Iterable[Condition] = (), definitions: Iterable[Condition] = ()
    ) -> Polynomial:
        """A new symbol; where ``name`` is taken, a number follows it."""
        unique, count = name, 1
        while unique in self.facts:
            count += 1
            unique = f"{name}.{count}"
        self.facts[unique], self.definitions[unique] = list(facts), list(definitions)
        return polynomials.symbol(unique)

    def titled(self, text: str) -> str:
        """``text`` with the titles of symbols in place of their names."""
        names = sorted(self.titles, key=len, reverse=True)
        found = re.compile("|".join(rf"\b{re.escape(name)}(?![\w.])" for name in names))
        return found.sub(lambda match: self.titles[match[0]], text) if names else text

    def known(self, form: Polynomial, *facts: Condition) -> None:
        """Adds facts of a symbol."""
        (name,) = form.symbols
        self.facts[name] += facts

    def defined(self, form: Polynomial, *definitions: Condition) -> None:
        (name,) = form.symbols
        self.definitions[name] += definitions

    def cone(self, given: Iterable[Condition], deep: bool) -> list[Condition]:
        """What is known of the symbols in ``given``, and of those that this names."""
        left = [name for one in given for form in conditions.forms_of(one) for name in form.symbols]
        found: list[Condition] = []
        seen: set[str] = set()
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            own = [*self.facts.get(name, ()), *(self.definitions.get(name, ()) if deep else ())]
            found += own
            left += [n for one in own for form in conditions.forms_of(one) for n in form.symbols]
        return found

    def valued(self, form: Polynomial, value: Callable[[Mapping[str, int]], int | None]) -> None:
        """Adds the value of a symbol to each sampled call; None: that call says nothing."""
        (name,) = form.symbols
        for sample in self.samples:
            own = value(sample)
            if own is not None:
                sample[name] = own

    def is_violated(self, claim: Condition) -> bool:
        """Whether ``claim`` does not hold in a sampled call."""
        names = {name for form in conditions.forms_of(claim) for name in form.symbols}
        return any(
            not np.all(conditions.evaluated(claim, sample))
            for sample in self.samples
            if names <= sample.keys()
        )

    def is_reached(self, path: Sequence[Condition], mask: Bools | None) -> bool:
        """Whether a thread of ``mask`` is where ``path`` holds, in a sampled call."""
        names = {x for one in path for form in conditions.forms_of(one) for x in form.symbols}
        flags = {flag for one in path for flag in conditions.flags_of(one)}
        for sample, value in product(self.samples, (0, 1)):
            values = {**sample, **dict.fromkeys(flags, value)}
            if names <= sample.keys() and self._thread(path, values, mask) is not None:
                return True
        return False

    # ---- terms of the solver ----

    def term(self, condition: Condition) -> Term:
        """A condition as a term, which is made once; it notes the vectors in it."""
        known = self._made.get(id(condition))
        if known is None:
            outer, self._used = self._used, {}
            known = condition, self._new_term(condition), tuple(self._used)
            self._made[id(condition)], self._used = known, outer
        _, term, vectors = known
        self._used.update(dict.fromkeys(vectors))
        return term

    def _new_term(self, condition: Condition) -> Term:
        match condition:
            case Truth(value):
                if isinstance(value, bool):
                    return solver.truth(value)
                return self._form(polynomials.fixed(value.astype(np.int64))) == 1
            case NotNegative(form):
                return self._form(form) >= 0
            case IsZero(form):
                return self._form(form) == 0
            case Multiple(form, divisor):
                return self._form(form) % divisor == 0
            case All(parts):
                return solver.all_of([self.term(part) for part in parts])
            case AnyOf(parts):
                return solver.any_of([self.term(part) for part in parts])
            case Not(part):
                return solver.negated(self.term(part))
            case Flag(name):
                return solver.flag(name)

    def _form(self, form: Polynomial) -> Term:
        total = solver.number(0)
        for monomial, value in form.terms.items():
            factors = [solver.integer(name) for name in monomial]
            first = solver.number(value) if isinstance(value, int) else self._vector(value)
            total = total + solver.product([first, *factors])
        return total

    def _vector(self, vector: Ints) -> Term:
        """The number that a vector has in one thread; vectors that differ by a factor and a
        constant have one variable."""
        least = int(vector.min())
        step = gcd(*map(int, np.unique(vector - least))) or 1
        digits = (vector - least) // step
        reversed_ = digits.max() - digits
        if reversed_.tobytes() < digits.tobytes():
            least, step, digits = int(vector.max()), -step, reversed_
        key = digits.tobytes()
        if key not in self._digits:
            name = f"thread digit {len(self._digits)}"
            digit = solver.integer(name)
            self._digits[key] = digit, digits
        digit, _ = self._digits[key]
        self._used[key] = None
        return digit * step + least

    # ---- questions ----

    def ask(
        self,
        given: Sequence[Condition],
        claim: Condition,
        mask: Bools | None = None,
        seconds: float | None = None,
    ) -> Judgment:
        """Whether ``claim`` holds wherever ``given`` does, in the threads of ``mask``."""
        limit = self.seconds if seconds is None else seconds
        if isinstance(claim, Truth) and claim.value is True:
            return Judgment("proved", queries=0)
        violated = (*given, conditions.negated(claim))
        spent, asked = 0.0, 0
        for deep in (False, True):
            found = self._search(violated, mask, deep, limit)
            spent, asked = spent + found.seconds, asked + found.queries
            if found.status == "proved" or (deep and found.status == "unknown"):
                return Judgment(found.status, {}, 0, spent, asked)
            if deep:
                return Judgment("refuted", found.values, found.thread, spent, asked)
        raise AssertionError

    def holds(self, given: Sequence[Condition], claim: Condition, seconds: float) -> bool:
        """Whether ``claim`` is proved in that time; no counterexample is searched."""
        if isinstance(claim, Truth):
            return claim.value is True
        violated = (*given, conditions.negated(claim))
        if self.questions.satisfiable(self._terms(violated, False), seconds).status == "unsat":
            return True
        if self.is_reached(violated, None):
            return False
        return self.questions.satisfiable(self._terms(violated, True), seconds).status == "unsat"

    def decided(self, key: object, given: Sequence[Condition], claim: Condition) -> bool:
        """``holds``, asked once for a key; conditions that the key names by id must live on."""
        if key not in self._decided:
            self._decided[key] = self.holds(given, claim, 1.0), given
        return self._decided[key][0]

    def can_hold(self, given: Sequence[Condition], seconds: float) -> bool | None:
        """Whether there are values for which ``given`` holds; None if that was not decided."""
        found = self.questions.satisfiable(self._terms(given, True), seconds).status
        return None if found == "unknown" else found == "sat"

    def example(self, given: Sequence[Condition], mask: Bools | None = None) -> Judgment:
        """Values for which ``given`` holds in a thread: ``refuted`` if there are some."""
        return self.ask(given, conditions.NO, mask)

    def _search(
        self, wanted: Sequence[Condition], mask: Bools | None, deep: bool, seconds: float
    ) -> Judgment:
        """A thread and values for which all of ``wanted`` holds (``refuted``)."""
        terms = self._terms(wanted, deep)
        used = [self._digits[key] for key in self._used]
        first = self.questions.satisfiable(terms, seconds)
        spent, asked = first.seconds, 1
        if first.status != "sat" or not deep:
            status: Status = "proved" if first.status == "unsat" else "unknown"
            return Judgment(status, {}, 0, spent, asked)
        for exact in (False, True):
            if exact:
                if not used:
                    break
                terms.append(_combinations(used, mask))
            for most in (*SMALL, None):
                small = [] if most is None else [solver.integer(n) <= most for n in self.sizes]
                found = self.questions.satisfiable([*terms, *small], seconds)
                spent, asked = spent + found.seconds, asked + 1
                if found.status == "sat":
                    thread = self._thread(wanted, found.values, mask)
                    if thread is not None:
                        return Judgment("refuted", found.values, thread, spent, asked)
                elif most is None and found.status == "unsat":
                    return Judgment("proved", {}, 0, spent, asked)
        return Judgment("unknown", {}, 0, spent, asked)

    def _terms(self, wanted: Sequence[Condition], deep: bool) -> list[Term]:
        """``wanted`` and what is known of its symbols and vectors."""
        self._used = {}
        terms = [self.term(one) for one in (*wanted, *self.cone(wanted, deep))]
        for digit, digits in (self._digits[key] for key in self._used):
            terms += [digit >= 0, digit <= int(digits.max())]
        return terms

    def _thread(
        self, wanted: Sequence[Condition], values: dict[str, int], mask: Bools | None
    ) -> int | None:
        """The first thread in which ``wanted`` holds for these values."""
        holds: bool | Bools = True if mask is None else mask
        for one in wanted:
            holds = holds & conditions.evaluated(one, values)
        if isinstance(holds, np.ndarray):
            return int(np.argmax(holds)) if holds.any() else None
        return 0 if holds else None


def _combinations(used: Sequence[tuple[Term, Ints]], mask: Bools | None) -> Term:
    """That the variables of vectors have the values of one thread."""
    rows = np.stack([digits for _, digits in used])
    if mask is not None:
        rows = rows[:, mask]
    distinct = np.unique(rows, axis=1)
    each = [
        solver.all_of([digit == int(x) for (digit, _), x in zip(used, column, strict=True)])
        for column in cast("Iterable[Ints]", distinct.T)
    ]
    return solver.any_of(each) if each else solver.truth(False)
