"""Sketches of schedules from plans: values are drawn from classes, and checked by the passes."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import field, replace

from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import OF_SLOT, Factor, classes_of, groups
from gemmgen.fuzz.facts import LAYOUT, SLOTS, Fact, Facts, Slot
from gemmgen.fuzz.head_classes import NONE, Plan
from gemmgen.fuzz.heads import DrawnHead
from gemmgen.fuzz.legal import Legality, Refused
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Program
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Value

_SIZES, _SAME, _VALUES = 40, 8, 6
"""How often sizes are drawn together (less often if one directive refuses them all), and values of
one directive, before something is changed."""


@record
class Sketch:
    """A legal schedule before it is written: its head and its facts, and what is legal with the
    head and with what it assumes."""

    head: DrawnHead
    assumes: tuple[str, ...]
    legality: Legality
    facts: Facts = field(default_factory=dict[Slot, Fact])

    @staticmethod
    def of(head: DrawnHead, assumes: tuple[str, ...] = ()) -> Sketch:
        """A sketch without facts."""
        text = "\n".join((*head.problem, *assumes))
        return Sketch(head, assumes, Legality(parse_schedule(Source(text))))

    def with_head(self, head: DrawnHead) -> Sketch:
        """The same facts, with what the head assumes about extents: the tile and the step are
        those of this sketch."""
        main = self.program.main
        pipeline = pipeline_of(main)
        (_, rows), (_, columns) = main.work.tile
        assumes = head.assumes((rows, columns), pipeline.step if pipeline else 0)
        if (head.problem, assumes) == (self.head.problem, self.assumes):
            return replace(self, head=head)
        return replace(Sketch.of(head, assumes), facts=self.facts)

    @property
    def program(self) -> Program:
        """Raises ``Refused``."""
        return self.legality.program(self.facts)

    def plan(self, threads: str) -> Plan:
        """Its classes; ``threads`` is the class of its program's threads per block."""
        return {**self.head.plan, "threads": threads, **classes_of(self.facts)}


def is_planned(slot: Slot, plan: Plan) -> bool:
    """Whether a plan has the slot, with all that is required."""
    factors = OF_SLOT[slot]
    required = all(plan[f.name] != NONE for f in factors if f.required)
    return required and any(plan[f.name] != NONE for f in factors)


def drawn(dice: Dice, slot: Slot, classes: Plan) -> Fact:
    """A fact of these classes."""
    fact: dict[str, Value] = {}
    factors = {f.argument: f for f in OF_SLOT[slot]}
    if slot.spec.layout:
        fact[LAYOUT] = classes[slot.name]
    for argument in slot.spec.arguments:
        factor = factors.get(argument.name)
        if factor is None:
            fact[argument.name] = dice.pick(groups(argument)[0])
        elif classes[factor.name] != NONE:
            fact[argument.name] = dice.pick(factor.of(classes[factor.name]))
    return fact


def grow(dice: Dice, plan: Plan, wanted: frozenset[str] = frozenset()) -> Sketch:
    """A legal sketch of ``plan``; illegal factors get other classes, or are dropped, ``wanted``
    ones last."""
    return _Growth(dice, plan, wanted).grown()


class _Growth:
    def __init__(self, dice: Dice, plan: Plan, wanted: frozenset[str]):
        self.dice, self.plan, self.kept = dice, plan, wanted
        self.free: set[str] = set()
        self.sketch = Sketch.of(DrawnHead(dice, plan))
        self.planned = [slot for slot in SLOTS if is_planned(slot, plan)]
        self.wanted = {s for s in self.planned if any(f.name in wanted for f in OF_SLOT[s])}

    def grown(self) -> Sketch:
        self._draw_sizes([slot for slot in self.planned if slot.spec.sizes])
        self.sketch = self.sketch.with_head(self.sketch.head)
        late = [slot for slot in self.planned if not slot.spec.sizes]
        for name in dict.fromkeys(slot.spec.name for slot in late):
            self._add([slot for slot in late if slot.spec.name == name])
        for slot in self.planned:
            if slot in self.wanted and slot not in self.sketch.facts:
                self._add([slot])
        return self.sketch

    def _draw_sizes(self, slots: list[Slot]) -> None:
        """Values of directives that distribute a tile, whose threads fill whole warps."""
        while slots:
            refused: Counter[str] = Counter()
            for tried in range(_SIZES):
                if tried == _SAME and len(refused) == 1 and "" not in refused:
                    break
                try:
                    return self._take(self._drawn(slots))
                except Refused as why:
                    refused[why.directive] += 1
            ((name, _),) = refused.most_common(1)
            if name in self.free or not name:
                slots = self._without_one(slots, [s for s in slots if s.spec.name == name])
            self.free.add(name)

    def _without_one(self, slots: list[Slot], blamed: list[Slot]) -> list[Slot]:
        """``slots`` but one: of those that are blamed, or of all; wanted ones only if need be."""
        for some in (blamed, slots):
            free = [slot for slot in some if slot not in self.wanted]
            if free:
                dropped = self.dice.pick(free)
                return [slot for slot in slots if slot is not dropped]
        dropped = self.dice.pick(slots)
        return [slot for slot in slots if slot is not dropped]

    def _add(self, slots: list[Slot]) -> None:
        """One directive of all operands that are planned, with other values, or of fewer."""
        while slots:
            for tried in range(_VALUES):
                if tried == _VALUES // 2:
                    self.free.add(slots[0].spec.name)
                with suppress(Refused):
                    return self._take({**self.sketch.facts, **self._drawn(slots)})
            slots = self._without_one(slots, [])

    def _take(self, facts: Facts) -> None:
        self.sketch.legality.program(facts)
        self.sketch = replace(self.sketch, facts=facts)

    def _drawn(self, slots: list[Slot]) -> dict[Slot, Fact]:
        return {slot: drawn(self.dice, slot, self._classes(slot)) for slot in slots}

    def _classes(self, slot: Slot) -> Plan:
        """The planned classes; any classes if they were refused and are not wanted."""
        return {factor.name: self._class(factor) for factor in OF_SLOT[slot]}

    def _class(self, factor: Factor) -> str:
        planned = self.plan[factor.name]
        free = factor.slot.spec.name in self.free and factor.name not in self.kept
        return self.dice.pick(factor.classes)[0] if free and planned != NONE else planned
