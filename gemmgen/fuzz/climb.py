"""Hill climbing: a sketch is changed step by step for as many new pairs of classes as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import FACTOR, FACTORS, OF_SLOT, Pair, classes_of_slot, pair_of
from gemmgen.fuzz.facts import Fact, Slot
from gemmgen.fuzz.growth import Sketch, drawn, is_planned
from gemmgen.fuzz.head_classes import DRAWN, NONE, Plan
from gemmgen.fuzz.heads import Head
from gemmgen.fuzz.legal import Crash, Legality, Refused

_DROPPED = 2
"""Directives that a step may remove."""
_VALUES, _SIZES = 6, 500
"""How often values are drawn for a step, and for an example."""
_VAIN = 10
"""Failed steps for a pair, after which it is given up."""
_WANTED = 1000
"""The value of a wanted class, in new pairs."""


@dataclass
class Unseen:
    """Pairs that no schedule has had, and the number of failed attempts at each."""

    pairs: set[Pair]
    vain: Counter[Pair] = field(default_factory=Counter[Pair])

    def new(self, plan: Plan, name: str, label: str) -> list[Pair]:
        """The pairs that a class of a factor would add to a plan."""
        found = (pair_of(name, label, other, plan[other]) for other in plan if other != name)
        return [pair for pair in found if pair in self.pairs and self.vain[pair] < _VAIN]


class Climb:
    """Steps of one factor each; a step is kept if the new sketch is legal and has no fewer new
    pairs.  The classes that are ``wanted`` are worth more than all others."""

    def __init__(self, dice: Dice, sketch: Sketch, unseen: Unseen, wanted: Plan):
        self.dice, self.sketch, self.unseen, self.wanted = dice, sketch, unseen, wanted
        self.legality = sketch.legality()
        self.plan = sketch.plan(self.legality.runnable(sketch.facts))

    def run(self) -> Sketch:
        names = self.dice.shuffled(name for name in FACTORS if name != "threads")
        for name in (*(n for n in self.wanted if n in names), *names):
            label = self._best(name)
            if label != self.plan[name] and not self._step(name, label):
                self.unseen.vain.update(self.unseen.new(self.plan, name, label))
        return self.sketch

    @property
    def reached(self) -> bool:
        """Whether the sketch has what is wanted."""
        return all(self.plan[name] == label for name, label in self.wanted.items())

    def _best(self, name: str) -> str:
        """The class of a factor with the most new pairs, the rest unchanged."""
        if name in self.wanted:
            return self.wanted[name]
        labels = [self.plan[name], *self.dice.shuffled(FACTORS[name])]
        return max(labels, key=lambda label: len(self.unseen.new(self.plan, name, label)))

    def _step(self, name: str, label: str) -> bool:
        if name in DRAWN:
            changed = replace(self.sketch, head=Head(self.dice, self.plan | {name: label}))
            changed.assume(self.legality)
            return self._kept(changed, changed.legality())
        sketches = self._changed(FACTOR[name].slot, {name: label})
        return any(self._kept(changed, self.legality) for changed in sketches)

    def _changed(self, slot: Slot, step: Plan) -> Iterator[Sketch]:
        """The sketch with another class for one of a slot's factors: first with the others as they
        are, then with any, and with other sizes."""
        own = {factor.name for factor in OF_SLOT[slot]}
        step = {name: label for name, label in self.wanted.items() if name in own} | step
        for tried in range(_VALUES):
            classes = {name: self.plan[name] for name in own} | step
            for f in OF_SLOT[slot]:
                if f.required and f.name not in step and (tried > 1 or classes[f.name] == NONE):
                    classes[f.name] = self.dice.pick(f.classes)[0]
            facts = {s: f for s, f in self.sketch.facts.items() if s is not slot}
            if NONE not in step.values() and is_planned(slot, classes):
                facts[slot] = drawn(self.dice, slot, classes)
            if tried > 1 and slot.spec.sizes:
                facts = {s: self._redrawn(s, f) for s, f in facts.items()}
            yield replace(self.sketch, facts=facts)

    def _redrawn(self, slot: Slot, fact: Fact) -> Fact:
        return redrawn(self.dice, slot, fact) if slot.spec.sizes else fact

    def _kept(self, changed: Sketch, legality: Legality) -> bool:
        """Takes a step if it is legal and no loss; directives that it makes illegal are removed."""
        for _ in range(_DROPPED + 1):
            try:
                program = legality.runnable(changed.facts)
            except Refused as why:
                less = {s: f for s, f in changed.facts.items() if s.spec.name != why.directive}
                if len(less) == len(changed.facts):
                    return False
                changed = replace(changed, facts=less)
                continue
            plan = changed.plan(program)
            if self._gain(plan) < 0:
                return False
            self.sketch, self.legality, self.plan = changed, legality, plan
            return True
        return False

    def _gain(self, plan: Plan) -> int:
        """The new pairs of the plan, compared with the current one."""
        changed = [name for name in FACTORS if plan[name] != self.plan[name]]
        gain = 0
        for name in changed:
            gain += len(self.unseen.new(plan, name, plan[name]))
            gain -= len(self.unseen.new(self.plan, name, self.plan[name]))
            if name in self.wanted:
                gain += _WANTED if plan[name] == self.wanted[name] else 0
                gain -= _WANTED if self.plan[name] == self.wanted[name] else 0
        return gain


def redrawn(dice: Dice, slot: Slot, fact: Fact) -> Fact:
    """Other values of the same classes."""
    classes = classes_of_slot(slot, fact)
    for factor in OF_SLOT[slot]:
        if factor.required and classes[factor.name] == NONE:
            classes[factor.name] = dice.pick(factor.classes)[0]
    return drawn(dice, slot, classes)


def resized(dice: Dice, sketch: Sketch) -> Iterator[tuple[Sketch, Plan]]:
    """The sketch and its classes with other values that the interpreter can run; none if such
    values are not found."""
    legality = sketch.legality()
    for _ in range(_SIZES):
        facts = {slot: redrawn(dice, slot, fact) for slot, fact in sketch.facts.items()}
        with suppress(Refused, Crash):
            changed, program = replace(sketch, facts=facts), legality.runnable(facts)
            yield changed, changed.plan(program)
            return
