"""The text of a sketch, spelled at random, that the whole compiler accepts."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import FACTOR, OF_SLOT, Factor, classes_of_slot, plan_of
from gemmgen.fuzz.facts import Facts, Slot
from gemmgen.fuzz.growth import Sketch, drawn
from gemmgen.fuzz.head_classes import Plan
from gemmgen.fuzz.legal import Crash, Refused
from gemmgen.fuzz.spelling import lines_of
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.schedule.formatting import format_schedule

_SHUFFLED = 0.25
"""How often statements come in any order."""


@record
class Written:
    """A schedule's text and its classes."""

    text: str
    plan: Plan


def written(dice: Dice, sketch: Sketch) -> Written:
    """The text of a sketch, without what the compiler refuses: limits of the target, say."""
    return _Writing(dice, sketch).written()


def wild(dice: Dice, sketch: Sketch) -> Written:
    """The text of a sketch with one fact changed, without a check of legality."""
    factor = dice.pick(tuple(FACTOR.values()))
    facts = {slot: fact for slot, fact in sketch.facts.items() if slot is not factor.slot}
    if factor.slot not in sketch.facts or dice.chance(0.5):
        classes = classes_of_slot(factor.slot, sketch.facts.get(factor.slot))
        classes |= {f.name: dice.pick(f.classes)[0] for f in (factor, *_required(factor.slot))}
        facts[factor.slot] = drawn(dice, factor.slot, classes)
    return _Writing(dice, sketch, facts).unchecked()


def _required(slot: Slot) -> Iterator[Factor]:
    return (factor for factor in OF_SLOT[slot] if factor.required)


def crashed(crash: Crash) -> Written:
    """The text of a schedule at which a pass raised no refusal."""
    return Written(format_schedule(crash.schedule), {})


class _Writing:
    def __init__(self, dice: Dice, sketch: Sketch, facts: Facts | None = None):
        self.dice, self.sketch = dice, sketch.with_head(sketch.head)
        self.facts = sketch.facts if facts is None else facts

    def written(self) -> Written:
        head = self.sketch.head
        optional, epilogue = [*head.kernel(), *head.optional()], head.epilogue()
        while True:
            text = self._text([*optional, *epilogue])
            try:
                emitted = compile_schedule(parse_schedule(Source(text)))
            except ScheduleError as error:
                if not optional:
                    self._drop(_blamed(text, error))
                optional = []
                continue
            except Exception:  # a bug, which the trial of the text reports
                return Written(text, {})
            x, y = emitted.interface.block
            return Written(text, plan_of(emitted.schedule, x * y))

    def unchecked(self) -> Written:
        """The text, whether or not the compiler accepts it."""
        head = self.sketch.head
        return Written(self._text([*head.kernel(), *head.optional(), *head.epilogue()]), {})

    def _text(self, others: list[str]) -> str:
        stated = lines_of(self.dice, self.facts, self.sketch.legality.directives)
        head = self.sketch.head
        lines = [*head.dtype, *head.target, *self.sketch.assumes, *stated, *others]
        if self.dice.chance(_SHUFFLED):
            lines = self.dice.shuffled(lines)
        return "".join(f"{line}\n" for line in (*head.first(), *lines))

    def _drop(self, name: str) -> None:
        """Leaves out the facts of the directive ``name``, and those that depend on them."""
        facts = dict(self.facts)
        while facts:
            blamed = [slot for slot in facts if slot.spec.name == name] or list(facts)
            dropped = self.dice.pick(blamed)
            facts = {slot: fact for slot, fact in facts.items() if slot is not dropped}
            try:
                self.sketch.legality.program(facts)
                break
            except Refused as why:
                name = why.directive
        self.facts = facts


def _blamed(text: str, error: ScheduleError) -> str:
    """The first word of the statement that the first mistake is about."""
    span = error.mistakes[0].span
    start = text.rfind("\n", 0, span.start) + 1 if span else 0
    return text[start:].split(maxsplit=1)[0] if span else ""
