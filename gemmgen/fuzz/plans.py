"""Plans from a seed: random, and each with as many pairs of classes not seen before as it can."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, islice

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import FACTORS, Pair, Plan, pairs
from gemmgen.fuzz.rules import RULES, breaks, broken

EPOCH = 500
"""Plans in a row that know of each other; a plan is found again from these alone."""
_TRIES = 4
_WILD = 16
"""Every so many plans one is made of a legal one by changes that no rule forbids."""
_PLAIN = 0.35
"""How likely a choice is a factor's first class, where no pair asks for another."""


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
        plan = dict(start)
        if all(_choose(dice, plan, factor) for factor in dice.shuffled(FACTORS)):
            return {factor: plan[factor] for factor in FACTORS}


def _choose(dice: Dice, plan: Plan, factor: str) -> bool:
    """Adds a class of ``factor`` that breaks no rule; False where there is none."""
    if factor in plan:
        return True
    classes = dice.shuffled(FACTORS[factor])
    if dice.chance(_PLAIN):
        classes.sort(key=lambda c: c != FACTORS[factor][0])
    for chosen in classes:
        plan[factor] = chosen
        if not breaks(plan, factor):
            return True
    del plan[factor]
    return False


def _wild(dice: Dice) -> Plan:
    """A plan that may be illegal: two classes of a legal one changed."""
    plan = _complete(dice, {})
    for _ in range(2):
        factor = dice.pick(tuple(FACTORS))
        plan[factor] = dice.pick(FACTORS[factor])
    return plan


@cache
def possible_pairs() -> frozenset[Pair]:
    """Every pair of classes that some legal plan has."""
    dice, found = Dice("pairs"), set[Pair]()
    for first, second in combinations(FACTORS, 2):
        for one in FACTORS[first]:
            for two in FACTORS[second]:
                pair = first, second, one, two
                if pair not in found and not broken({first: one, second: two}):
                    plan = _search(dice, {first: one, second: two})
                    found.update(pairs(plan) if plan else ())
    return frozenset(found)


_ATTEMPTS = 300


def _search(dice: Dice, start: Plan) -> Plan | None:
    """A legal plan that holds ``start``; what its factors have to do with is chosen first, so that
    a dead end shows early."""
    near = {factor for rule in RULES if rule.factors & start.keys() for factor in rule.factors}
    far = [factor for factor in FACTORS if factor not in near]
    for _ in range(_ATTEMPTS):
        plan = dict(start)
        order = (*dice.shuffled(f for f in FACTORS if f in near), *far)
        if all(_choose(dice, plan, factor) for factor in order):
            return {factor: plan[factor] for factor in FACTORS}
    return None


def is_wild(index: int) -> bool:
    """Was the plan at ``index`` changed against the rules?"""
    return index % EPOCH % _WILD == _WILD - 1
