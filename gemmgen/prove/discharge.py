"""The goals of a walk, decided: most without the solver, as a weaker or an equal claim holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gemmgen.base.units import numeral
from gemmgen.ir.interface import INT_MAX
from gemmgen.prove import condition_queries, conditions, polynomials
from gemmgen.prove.conditions import Condition, NotNegative
from gemmgen.prove.data import numbers
from gemmgen.prove.goals import Fact, Goal, Range, Where
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.solver import Status
from gemmgen.prove.theory import Judgment
from gemmgen.prove.walk_context import WalkContext

INT_MIN = -INT_MAX - 1


@dataclass
class Counterexample:
    """A violation with values for which it happens, or what could not be decided."""

    about: str
    where: Where
    values: dict[str, int] = field(default_factory=dict[str, int])
    thread: int = 0
    address: str = ""
    certain: bool = True


@dataclass
class FactOutcome:
    """What is known of one fact; ``checks`` counts the accesses and claims that it is about;
    ``late``: the proof ran out of time."""

    fact: Fact
    status: Status = "proved"
    reason: str = ""
    queries: int = 0
    checks: int = 0
    seconds: float = 0.0
    finding: Counterexample | None = None
    late: bool = False

    def worse(self, status: Status, reason: str, finding: Counterexample | None = None) -> None:
        """Takes a worse status; the first of its kind gives the reason."""
        rank = ("proved", "unknown", "refuted")
        if rank.index(status) > rank.index(self.status):
            self.status, self.reason, self.finding = status, reason, finding


class Discharge:
    """Decides the goals of one walk, for at most ``seconds`` a fact."""

    def __init__(self, context: WalkContext, seconds: float):
        self.context, self.seconds = context, seconds
        self._known: dict[object, bool] = {}

    def fact(self, fact: Fact) -> FactOutcome:
        """All that the walk has found for one fact."""
        begin = time.perf_counter()
        self.context.theory.questions.about = f"the fact {fact}"
        outcome = FactOutcome(fact, checks=self.context.ledger.counted.get(fact, 0))
        self._violations(outcome)
        if fact == "int32":
            self._ranges(outcome, begin)
        own = [goal for goal in self.context.ledger.goals.values() if goal.fact == fact]
        self.goals(outcome, own, begin)
        outcome.seconds += time.perf_counter() - begin
        return outcome

    def goals(self, outcome: FactOutcome, goals: Sequence[Goal], begin: float) -> None:
        for goal in self._without_weaker(goals, outcome):
            if outcome.status == "refuted":
                return
            if time.perf_counter() - begin > self.seconds:
                outcome.worse("unknown", f"not decided in {numeral(self.seconds)} seconds")
                return
            verdict = self.context.theory.ask(goal.path, goal.claim, goal.mask)
            outcome.queries += verdict.queries
            if verdict.status == "unknown":
                outcome.worse("unknown", f"the solver does not know whether {goal.about}")
            elif verdict.status == "refuted":
                finding = _finding(goal, verdict)
                free = self.context.free.keys() & verdict.values.keys()
                finding.certain = goal.certain and not free
                outcome.worse("refuted" if finding.certain else "unknown", goal.about, finding)

    def _without_weaker(self, goals: Sequence[Goal], outcome: FactOutcome) -> list[Goal]:
        """The goals that neither their paths state nor one claim for all alike ones implies."""
        left = [goal for goal in goals if not condition_queries.is_stated(goal.path, goal.claim)]
        alike: dict[object, list[Goal]] = {}
        for goal in left:
            if isinstance(goal.claim, NotNegative):
                alike.setdefault(_symbols(goal.claim.form), []).append(goal)
        implied: set[int] = set()
        for group in alike.values():
            least = min(group, key=lambda goal: _least(goal.claim))
            claim = NotNegative(with_constant(_form(least.claim), _least(least.claim)))
            outcome.queries += 1
            if self.context.theory.holds((), claim, 1.0):
                implied |= {id(goal) for goal in group}
        return [goal for goal in left if id(goal) not in implied]

    def _violations(self, outcome: FactOutcome) -> None:
        for one in self.context.ledger.of(outcome.fact):
            mask = np.zeros(self.context.threads, np.bool_)
            mask[one.thread] = True
            verdict = self.context.theory.example((*one.path, *one.assumed), mask)
            outcome.queries += verdict.queries
            sure = one.certain and verdict.status == "refuted"
            if verdict.status == "proved" and one.assumed:
                verdict = self.context.theory.example(one.path, mask)
                outcome.queries += verdict.queries
            if verdict.status == "proved":
                continue
            about = self.context.theory.titled(one.about)
            finding = Counterexample(about, one.where, verdict.values, one.thread, certain=sure)
            outcome.worse("refuted" if sure else "unknown", about, finding)

    def _ranges(self, outcome: FactOutcome, begin: float) -> None:
        """32-bit results: those that differ in a constant are decided by their ends."""
        alike: dict[object, list[Range]] = {}
        for one in self.context.ledger.ranges.values():
            alike.setdefault(_symbols(one.form), []).append(one)
        for group in alike.values():
            outcome.checks += len(group)
            constants = [numbers(one.form.constant, self.context.threads) for one in group]
            low = min(int(each.min()) for each in constants)
            high = max(int(each.max()) for each in constants)
            first = group[0].form
            claims = (_above(with_constant(first, low)), _below(with_constant(first, high)))
            outcome.queries += 2
            if all(self.context.theory.holds((), claim, 1.0) for claim in claims):
                continue
            goals: list[Goal] = []
            for one in group:
                for claim in (_above(one.form), _below(one.form)):
                    about = "a 32-bit integer overflows"
                    address = ("", (one.form,))
                    goals.append(
                        Goal("int32", claim, one.path, one.mask, one.where, about, address)
                    )
            self.goals(outcome, goals, begin)


def _above(form: Polynomial) -> Condition:
    return conditions.at_least(form, polynomials.fixed(INT_MIN))


def _below(form: Polynomial) -> Condition:
    return conditions.at_least(polynomials.fixed(INT_MAX), form)


def _symbols(form: Polynomial) -> object:
    return tuple(
        (monomial, value if isinstance(value, int) else value.tobytes())
        for monomial, value in sorted(form.terms.items())
        if monomial != polynomials.ONE
    )


def _form(claim: Condition) -> Polynomial:
    assert isinstance(claim, NotNegative)
    return claim.form


def _least(claim: Condition) -> int:
    constant = _form(claim).constant
    return constant if isinstance(constant, int) else int(constant.min())


def with_constant(form: Polynomial, constant: int) -> Polynomial:
    terms = {
        monomial: value for monomial, value in form.terms.items() if monomial != polynomials.ONE
    }
    return polynomials.add(Polynomial(terms), polynomials.fixed(constant))


def _finding(goal: Goal, verdict: Judgment) -> Counterexample:
    name, indices = goal.address
    found: list[int] = []
    for form in indices:
        own = polynomials.evaluated(polynomials.of_thread(form, verdict.thread), verdict.values)
        found.append(int(own))
    address = f"{name}[{', '.join(map(str, found))}]" if name else ", ".join(map(str, found))
    return Counterexample(goal.about, goal.where, verdict.values, verdict.thread, address)
