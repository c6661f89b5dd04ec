"""Hill climbing: a sketch is changed step by step for as many new pairs of classes as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import FACTOR, FACTORS, OF_SLOT, Class, classes_of_slot
from gemmgen.fuzz.facts import Fact, Facts, Slot
from gemmgen.fuzz.growth import Sketch, drawn, is_planned
from gemmgen.fuzz.head_classes import DRAWN, NONE, Plan, threads_class
from gemmgen.fuzz.heads import DrawnHead
from gemmgen.fuzz.legal import Crash, Refused
from gemmgen.fuzz.unseen import Unseen, bits

_DROPPED = 2
"""Directives that a step may remove."""
_VALUES, _WANTED_VALUES, _SIZES = 2, 6, 500
"""How often values are drawn for a step, for one to a wanted class, and for an example."""
_WANTED = 1000
"""The value of a wanted class, in new pairs."""


class Climb:
    """Steps of one factor each; a step is kept if the new sketch is legal and has no fewer new
    pairs.  The classes that are ``wanted`` are worth more than all others."""

    def __init__(self, dice: Dice, sketch: Sketch, unseen: Unseen, wanted: Plan):
        self.dice, self.sketch, self.unseen, self.wanted = dice, sketch, unseen, wanted
        self.plan = _plan(sketch)
        self.bits = bits(self.plan.items())

    def reach(self) -> bool:
        """Steps to what is wanted; whether the sketch has it."""
        self._steps(self.wanted)
        return self.wanted.items() <= self.plan.items()

    def run(self) -> None:
        """A step of each factor, in a random order."""
        self._steps(self.dice.shuffled(FACTORS))

    def _steps(self, names: Iterable[str]) -> None:
        for name in names:
            label = self._best(name)
            if name == "threads" or label == self.plan[name]:
                continue
            if not self._step(name, label):
                self.unseen.fail((name, label), self.plan)

    def _best(self, name: str) -> str:
        """The class of a factor with the most new pairs, the rest unchanged; of several any one, if
        it is not a directive's."""
        if name in self.wanted:
            return self.wanted[name]
        labels = self.dice.shuffled(FACTORS[name])
        if name not in DRAWN:
            labels = [self.plan[name], *labels]
        return max(labels, key=lambda label: self.unseen.new((name, label), self.bits))

    def _step(self, name: str, label: str) -> bool:
        if name in DRAWN:
            plan = self.plan | {name: label}
            if name == "reads" and label != NONE and plan["epilogue"] == NONE:
                plan["epilogue"] = self.dice.pick(FACTORS["epilogue"][1:])  # which reads it
            return self._kept(self.sketch.with_head(DrawnHead(self.dice, plan)))
        return any(map(self._kept, self._changed(FACTOR[name].slot, {name: label})))

    def _changed(self, slot: Slot, step: Plan) -> Iterator[Sketch]:
        """The sketch with another class for one of a slot's factors: first with the others as they
        are, then with any, and with other sizes."""
        own = {factor.name for factor in OF_SLOT[slot]}
        is_wanted = not step.keys().isdisjoint(self.wanted)
        step = {name: label for name, label in self.wanted.items() if name in own} | step
        for tried in range(_WANTED_VALUES if is_wanted else _VALUES):
            classes = {name: self.plan[name] for name in own} | step
            for f in OF_SLOT[slot]:
                if f.required and f.name not in step and (tried > 1 or classes[f.name] == NONE):
                    classes[f.name] = self.dice.pick(f.classes)[0]
            facts = {s: f for s, f in self.sketch.facts.items() if s is not slot}
            if NONE not in step.values() and is_planned(slot, classes):
                facts[slot] = drawn(self.dice, slot, classes)
            if tried > 1 and slot.spec.sizes:
                facts = _redrawn(self.dice, facts)
            yield replace(self.sketch, facts=facts)

    def _kept(self, changed: Sketch) -> bool:
        """Takes a step if it is legal and no loss; directives that it makes illegal are removed."""
        for _ in range(_DROPPED + 1):
            if self._gain(changed.plan(self.plan["threads"])) < 0:  # before the passes are asked
                return False
            try:
                plan = _plan(changed)
            except Refused as why:
                less = {s: f for s, f in changed.facts.items() if s.spec.name != why.directive}
                if len(less) == len(changed.facts):
                    return False
                changed = replace(changed, facts=less)
                continue
            if self._gain(plan) < 0:
                return False
            self.sketch, self.plan, self.bits = changed, plan, bits(plan.items())
            return True
        return False

    def _gain(self, plan: Plan) -> int:
        """The new pairs of the plan, compared with the current one."""
        new = bits(plan.items())
        gained = sum(self._worth(one, new) for one in plan.items() - self.plan.items())
        return gained - sum(self._worth(one, self.bits) for one in self.plan.items() - plan.items())

    def _worth(self, one: Class, plan: int) -> int:
        return self.unseen.new(one, plan) + (_WANTED if one in self.wanted.items() else 0)


def _plan(sketch: Sketch) -> Plan:
    """The classes of a sketch; raises ``Refused`` if it is illegal."""
    return sketch.plan(threads_class(sketch.program.main.threads))


def _redrawn(dice: Dice, facts: Facts) -> Facts:
    """The same classes with other sizes."""
    return {s: _resized(dice, s, fact) if s.spec.sizes else fact for s, fact in facts.items()}


def _resized(dice: Dice, slot: Slot, fact: Fact) -> Fact:
    """A value that is in no class, as one of a large example, gets any class."""
    classes = classes_of_slot(slot, fact)
    absent = {
        a.name for a in slot.spec.arguments if fact.get(a.name) in (None, a.default, a.identity)
    }
    for factor in OF_SLOT[slot]:
        if classes[factor.name] == NONE and (factor.required or factor.argument not in absent):
            classes[factor.name] = dice.pick(factor.classes)[0]
    return drawn(dice, slot, classes)


def resized(dice: Dice, sketch: Sketch) -> Iterator[tuple[Sketch, Plan]]:
    """The sketch and its classes with other values that the interpreter can run; none if such
    values are not found."""
    with suppress(Crash):  # a bug, which the first schedules show
        for _ in range(_SIZES):
            changed = replace(sketch, facts=_redrawn(dice, sketch.facts))
            with suppress(Refused):
                yield changed, _plan(changed)
                return
