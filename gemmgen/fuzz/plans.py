"""Plans from a seed: random, and each with as many pairs of classes not seen before as it can."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import combinations, islice

from gemmgen.base import caches
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import FACTORS, Pair, Plan, pairs
from gemmgen.fuzz.rules import RULES, broken, broken_by
from gemmgen.proof import verdicts

EPOCH = 500
"""Plans in a row that know of each other; a plan is found again from these alone."""
_TRIES = 4
_WILD = 16
"""Every so many plans one is made of a legal one by changes that no rule forbids."""
_PATIENCE, _PROOF = 150, 2000
"""Choices after which a search begins anew, and a search for a proof that there is no plan ends."""
_PLAIN = 0.35
"""How likely a choice is a factor's first class, where no pair asks for another."""

Classes = tuple[tuple[str, Sequence[str]], ...]
"""Factors in the order in which they are chosen, and their classes in that in which they are
tried."""


def plan_at(seed: int, index: int) -> Plan:
    """The ``index``-th plan of a seed."""
    epoch, place = divmod(index, EPOCH)
    return _epoch(seed, epoch, place)


@cache
def _started(seed: int, epoch: int) -> tuple[list[Plan], Iterator[Plan]]:
    return [], plans(seed, epoch)


def _epoch(seed: int, epoch: int, place: int) -> Plan:
    known, more = _started(seed, epoch)
    known += islice(more, max(0, place + 1 - len(known)))
    return known[place]


def plans(seed: int, epoch: int) -> Iterator[Plan]:
    """An epoch's plans, without end."""
    dice, unseen, number = Dice(seed, epoch, "plans"), set(possible_pairs()), 0
    waiting = dice.shuffled(sorted(unseen))
    while True:
        number += 1
        if number % _WILD == 0:
            yield _wild(dice)
            continue
        while waiting and waiting[-1] not in unseen:
            waiting.pop()
        wanted = waiting.pop() if waiting else None
        found = [_complete(dice, _start(wanted)) for _ in range(_TRIES if wanted else 1)]
        plan = max(found, key=lambda p: sum(pair in unseen for pair in pairs(p)))
        unseen.difference_update(pairs(plan))
        yield plan


def _start(pair: Pair | None) -> Plan:
    return {pair[0]: pair[2], pair[1]: pair[3]} if pair else {}


def _complete(dice: Dice, start: Plan) -> Plan:
    """A legal plan that holds ``start``, which has one."""
    while True:
        with suppress(_Anew):
            classes = _classes(dice, start, dice.shuffled(FACTORS), _PLAIN)
            found = _Extending(_PATIENCE).extended(dict(start), classes)
            assert isinstance(found, dict), f"no legal plan holds {start}"
            return {factor: found[factor] for factor in FACTORS}


def _classes(dice: Dice, start: Plan, order: Iterable[str], plain: float = 0.0) -> Classes:
    """What is tried, in this order, for each factor that ``start`` leaves open."""
    found: list[tuple[str, list[str]]] = []
    for factor in order:
        if factor not in start:
            classes = dice.shuffled(FACTORS[factor])
            if plain and dice.chance(plain):
                classes.sort(key=lambda c: c != FACTORS[factor][0])
            found.append((factor, classes))
    return tuple(found)


class _Anew(Exception):
    """A choice for which no sizes are left, with which many others have to do; or patience is."""


class _Extending:
    """A search with backjumping: what a dead end does not depend on is not tried again.

    It raises ``_Anew`` after ``patience`` choices.  Not ``sized``, it looks at no rule of sizes.
    """

    def __init__(self, patience: int, sized: bool = True):
        self.patience, self.sized = patience, sized

    def extended(self, plan: Plan, rest: Classes) -> Plan | frozenset[str]:
        """``plan`` with a class for each factor of ``rest``; where there is no legal one, the
        factors of ``plan`` that are to blame."""
        if not rest:
            return plan
        (factor, classes), later = rest[0], rest[1:]
        blamed, sizeless = frozenset[str](), False
        for chosen in classes:
            self.patience -= 1
            plan[factor] = chosen
            rule = broken_by(plan, factor, self.sized)
            found = self.extended(plan, later) if rule is None else rule.factors
            if isinstance(found, dict):
                return found
            if factor not in found:
                blamed = found
                break
            blamed |= found
            sizeless |= rule is not None and rule.of_sizes
        if sizeless or self.patience < 0:
            raise _Anew
        del plan[factor]
        return blamed - {factor}


def _wild(dice: Dice) -> Plan:
    """A plan that may be illegal: two classes of a legal one changed."""
    plan = _complete(dice, {})
    for _ in range(2):
        factor = dice.pick(tuple(FACTORS))
        plan[factor] = dice.pick(FACTORS[factor])
    return plan


@cache
def possible_pairs() -> frozenset[Pair]:
    """Every pair of classes that some legal plan has; kept for the next process, as finding them
    takes seconds."""
    name = f"pairs-{caches.key(verdicts.checker())}"
    known = caches.read(name)
    if known is not None:
        return frozenset((a, b, c, d) for a, b, c, d in json.loads(known[_KEPT]))
    found = _legal_pairs()
    caches.write(name, {_KEPT: json.dumps(sorted(found)).encode()})
    return found


_KEPT = "pairs.json"


def _legal_pairs() -> frozenset[Pair]:
    dice, found = Dice("pairs"), set[Pair]()
    for first, second in combinations(FACTORS, 2):
        for one in FACTORS[first]:
            for two in FACTORS[second]:
                pair = first, second, one, two
                if pair not in found and not broken({first: one, second: two}):
                    plan = _search(dice, {first: one, second: two})
                    found.update(pairs(plan) if plan else ())
    return frozenset(found)


_ATTEMPTS = 60


def _search(dice: Dice, start: Plan) -> Plan | None:
    """A legal plan that holds ``start``; what its factors have to do with is chosen first, so that
    a dead end shows early."""
    near = _near(*start)
    order = sorted(FACTORS, key=lambda factor: factor not in near)
    with suppress(_Anew):
        proof = _Extending(_PROOF, sized=False)
        if not isinstance(proof.extended(dict(start), _classes(dice, start, order)), dict):
            return None
    for _ in range(_ATTEMPTS):
        order = sorted(dice.shuffled(FACTORS), key=lambda factor: factor not in near)
        with suppress(_Anew):
            found = _Extending(_PATIENCE).extended(dict(start), _classes(dice, start, order))
            return found if isinstance(found, dict) else None
    return None


@cache
def _near(*chosen: str) -> frozenset[str]:
    """The factors that rules of few factors name together with those that are chosen."""
    rules = (r.factors for r in RULES if not r.of_sizes and not r.factors.isdisjoint(chosen))
    return frozenset[str]().union(*rules)


def is_wild(index: int) -> bool:
    """Was the plan at ``index`` changed against the rules?"""
    return index % EPOCH % _WILD == _WILD - 1
