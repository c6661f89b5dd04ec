"""Factors in which two schedules can differ, each with a few classes of values.

Those of directives follow from the specifications of the passes: operands, hops and arguments, and
the classes of an argument's values in its ``fuzz``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gemmgen.base.record import record
from gemmgen.fuzz import head_classes
from gemmgen.fuzz.facts import KEPT, LAYOUT, SLOTS, TRANSPOSED, Fact, Facts, Slot, facts_of
from gemmgen.fuzz.head_classes import NONE, Plan
from gemmgen.schedule.model import Schedule, Value
from gemmgen.schedule.spec import ArgumentSpec

Class = tuple[str, str]
"""A factor and one of its classes."""
Pair = tuple[Class, Class]
"""Classes of two factors, in the order of ``FACTORS``."""
Values = tuple[Value, ...]

_USUAL = (1, 2, 3, 4, 8)
"""Values of an integer argument whose specification has no classes."""


@record
class Factor:
    """A choice of a slot: the values of an argument, by class; without an argument, whether the
    slot is present."""

    name: str
    slot: Slot
    argument: str | None
    required: bool
    classes: tuple[tuple[str, Values], ...]

    def of(self, label: str) -> Values:
        """The values of a class."""
        return dict(self.classes)[label]

    def label(self, fact: Fact | None) -> str:
        """The class of a slot's fact."""
        if fact is None or self.argument is None:
            return NONE if fact is None else "yes"
        value = fact.get(self.argument)
        return next((label for label, group in self.classes if value in group), NONE)


def groups(argument: ArgumentSpec) -> tuple[Values, ...]:
    """The classes of an argument's values, without the one that equals its absence."""
    if argument.kind == "word":
        return tuple((word,) for word in argument.choices if word != argument.identity)
    usual = (v for v in _USUAL if argument.minimum <= v <= argument.maximum)
    return argument.fuzz or (tuple(v for v in usual if v != argument.identity),)


def _factors(slot: Slot) -> Iterator[Factor]:
    """Words, integers of several classes, and an only argument; whether the slot is present if none
    of these implies it."""
    spec = slot.spec
    chosen = [
        a
        for a in spec.arguments
        if a.kind == "word" or len(groups(a)) > 1 or len(spec.arguments) == 1
    ]
    if spec.layout:
        yield Factor(slot.name, slot, LAYOUT, True, ((KEPT, (KEPT,)), (TRANSPOSED, (TRANSPOSED,))))
    elif not chosen or any(a.required and a not in chosen for a in spec.arguments):
        yield Factor(slot.name, slot, None, True, (("yes", ()),))
    for a in chosen:
        name = a.name.replace("<", "").replace(">", "")
        name = slot.name if len(spec.arguments) == 1 else f"{slot.name} {name}"
        yield Factor(
            name, slot, a.name, a.required, tuple((_label(group), group) for group in groups(a))
        )


def _label(group: Values) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}..{group[-1]}"


OF_SLOT: dict[Slot, tuple[Factor, ...]] = {slot: tuple(_factors(slot)) for slot in SLOTS}
"""The factors of each slot."""

FACTOR = {factor.name: factor for factors in OF_SLOT.values() for factor in factors}

FACTORS: dict[str, tuple[str, ...]] = head_classes.FACTORS | {
    factor.name: (NONE, *dict(factor.classes)) for slot in SLOTS for factor in OF_SLOT[slot]
}
"""The classes of each factor; the first is that of a plain schedule."""


CLASSES: tuple[Class, ...] = tuple((name, label) for name in FACTORS for label in FACTORS[name])

EVERY_PAIR: tuple[Pair, ...] = tuple(
    (one, other) for one, other in combinations(CLASSES, 2) if one[0] != other[0]
)
"""All pairs of classes, legal or not."""

WORDS = frozenset(slot.spec.name for slot in SLOTS) | {
    word for slot in SLOTS for argument in slot.spec.arguments for word in argument.choices
}
"""Directives, and the words that are values of their arguments."""


def has_word(one: Class, words: frozenset[str]) -> bool:
    """Whether a schedule with this class has one of ``WORDS``."""
    name, label = one
    return label != NONE and (label in words or name.split()[0] in words)


def pairs(plan: Plan) -> Iterator[Pair]:
    """The pairs of classes in a plan."""
    return combinations(((name, plan[name]) for name in FACTORS), 2)


_ABSENT = dict.fromkeys(FACTOR, NONE)


def plan_of(schedule: Schedule, threads: int) -> Plan:
    """The classes that a schedule has; ``threads`` are those of its block."""
    return head_classes.plan_of(schedule, threads) | classes_of(facts_of(schedule))


def classes_of(facts: Facts) -> Plan:
    """The classes of all slots."""
    found = dict(_ABSENT)
    for slot, fact in facts.items():
        found |= classes_of_slot(slot, fact)
    return found


def classes_of_slot(slot: Slot, fact: Fact | None) -> Plan:
    """The classes of a slot's factors."""
    return {factor.name: factor.label(fact) for factor in OF_SLOT[slot]}
