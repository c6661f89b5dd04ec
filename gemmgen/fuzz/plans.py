"""Schedules from a seed, each with as many new pairs of classes as possible.

As in coverage-guided fuzzing, sketches are kept by their classes: another schedule with a class
begins from one of them.  The examples are the first.  Legality is checked elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from textwrap import dedent

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.fuzz import head_classes
from gemmgen.fuzz.climb import Climb, resized
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import (
    CLASSES,
    EVERY_PAIR,
    FACTORS,
    OF_SLOT,
    Class,
    Pair,
    classes_of,
    has_word,
)
from gemmgen.fuzz.facts import SLOTS, facts_of
from gemmgen.fuzz.growth import Sketch, grow
from gemmgen.fuzz.head_classes import DRAWN, NONE, Plan, threads_class
from gemmgen.fuzz.heads import DrawnHead
from gemmgen.fuzz.legal import Crash
from gemmgen.fuzz.unseen import Unseen
from gemmgen.fuzz.writing import Written, crashed, wild, written
from gemmgen.ir.target import WARP
from gemmgen.language import parse_schedule
from gemmgen.schedule import examples
from gemmgen.schedule.model import Schedule

_TRIES = 3
"""How often a pair is wanted, until it is given up."""
_PAIRS = 4
"""Pairs that are wanted of one schedule, until it has one."""
_WILD = 16
"""Every so many schedules one is changed without asking whether it stays legal."""
_KNOWN = 4
"""Sketches that are kept of each class."""
_ENGINE = 5
"""Every so many schedules one has its tiles copied by the copy engine: seldom is that legal where
nobody wants it, and much is legal beside it alone."""
_BESIDE = {"persistent": "yes", "warp_specialize": "yes", "cache_shared C": "kept"}
"""What half of those schedules have each, where it is legal."""
_BOXED: tuple[Class, ...] = (("async_copy A", "tma"), ("async_copy B", "tma"))
_IN_TURNS = 0.3
"""How many of them have consumers that take tiles in turn."""
_TURNS: Class = ("warp_specialize order", "in_turn")
_IN_TURN = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=32 n=64 k=8
    cache_shared A B C
    register_block m=4 n=4
    double_buffer A B C
    async_copy A B C via=tma
    persistent
    warp_specialize producers=1 order=in_turn
"""
"""Small enough for an interpreter: sizes that are drawn seldom have a warpgroup's threads."""
_PLAIN = 0.35
"""How likely a choice is a factor's first class."""
_FRESH = 0.25
"""How often a schedule begins from an empty one, although a sketch with a wanted class is known."""
_LOST = 6
"""How often a class that no schedule had yet is wanted, until it is given up."""
_REDRAWN = 8
"""How often a schedule that was drawn before is drawn anew."""
_WORD = re.compile(r"\w+")


class Epoch:
    """An endless sequence of schedules that share their coverage of pairs; none is there twice,
    unless nothing else is drawn, and none has one of the words in ``without``."""

    def __init__(self, seed: int, number: int, without: frozenset[str] = frozenset()):
        self.dice = Dice(seed, number, "plans")
        self._without = without
        self._barred = {one for one in CLASSES if has_word(one, without)}
        self.unseen = Unseen(self._barred)
        self._seen: set[Class] = set()
        self._texts: set[str] = set()
        self._vain: Counter[Class] = Counter()
        self._tried: Counter[Pair] = Counter()
        each = self.dice.shuffled((one, one) for one in CLASSES if one not in self._barred)
        every = (pair for pair in EVERY_PAIR if self._barred.isdisjoint(pair))
        self._waiting = deque((*each, *each, *self.dice.shuffled(every)))
        self._known: dict[Class, list[Sketch]] = {}
        for sketch, plan in _seeds(self.dice):
            if self._barred.isdisjoint(plan.items()):
                self._keep(sketch, plan)

    def schedules(self) -> Iterator[Written]:
        for number in count(1):
            found = self._new(number)
            if not self._without.isdisjoint(_WORD.findall(found.text)):
                continue  # drawn for an argument that is required, or wild
            self._texts.add(found.text)
            if found.plan:
                self.unseen.see(found.plan)
                self._seen.update(found.plan.items())
            yield found

    def _new(self, number: int) -> Written:
        found = self._next(number)
        for _ in range(_REDRAWN):
            if found.text not in self._texts:
                break
            found = self._next(number)
        return found

    def _next(self, number: int) -> Written:
        try:
            sketch = self._sketched(number)
            return wild(self.dice, sketch) if number % _WILD == 0 else written(self.dice, sketch)
        except Crash as crash:
            return crashed(crash)

    def _sketched(self, number: int) -> Sketch:
        if number % _ENGINE == 0:
            climb = self._boxed()
        else:
            climb = self._begun()
            for _ in range(_PAIRS - 1):
                if climb.reach():
                    break
                self._vain.update(climb.wanted.items())
                climb = self._begun()
        climb.run()
        self._keep(climb.sketch, climb.plan)
        return climb.sketch

    def _boxed(self) -> Climb:
        """From a sketch whose tiles the copy engine copies, with what is legal beside it alone."""
        bases = (_TURNS,) if self.dice.chance(_IN_TURNS) else _BOXED
        known = [found for one in bases if (found := self._known.get(one))]
        if not known:
            return self._begun()
        sketch = self.dice.pick(self.dice.pick(known))
        wanted = {one: label for one, label in _BESIDE.items() if self.dice.chance(0.5)}
        for name, label in (*_BOXED, *bases):
            if classes_of(sketch.facts)[name] == label:
                wanted[name] = label
        climb = Climb(self.dice, sketch, self.unseen, wanted)
        climb.reach()
        return climb

    def _begun(self) -> Climb:
        wanted = self._wanted()
        return Climb(self.dice, self._base(wanted), self.unseen, wanted)

    def _wanted(self) -> Plan:
        """A class that was not seen, later a pair of them."""
        while self._waiting:
            pair = self._waiting.popleft()
            lost = any(one not in self._seen and self._vain[one] > _LOST for one in pair)
            if pair in self.unseen and self._tried[pair] < _TRIES and not lost:
                self._tried[pair] += 1
                self._waiting.append(pair)
                return dict(pair)
        return {}

    def _base(self, wanted: Plan) -> Sketch:
        """The sketch from which a schedule with ``wanted`` begins: one with the rarer of its
        classes."""
        known = [found for c in wanted.items() if (found := self._known.get(c))]
        if known and (len(wanted) == 1 or not self.dice.chance(_FRESH)):
            return self.dice.pick(min(known, key=len))
        return grow(self.dice, self._plan(wanted), frozenset(wanted))

    def _keep(self, sketch: Sketch, plan: Plan) -> None:
        for found in plan.items():
            if found in _BOXED and _TURNS in plan.items():
                continue  # others begin from those of their own
            known = self._known.setdefault(found, [])
            known.append(sketch)
            del known[:-_KNOWN]

    def _plan(self, wanted: Plan) -> Plan:
        """Random classes besides those that are wanted."""
        plan = dict(wanted)
        for name in DRAWN:
            plan.setdefault(name, self._class(name))
        for slot in SLOTS:
            there = any(plan.get(f.name, NONE) != NONE for f in OF_SLOT[slot])
            there = there or not self.dice.chance(_PLAIN)
            for f in OF_SLOT[slot]:
                first = f.required or len(OF_SLOT[slot]) == 1
                some = self._allowed(f.name)[1:] or (NONE,)
                chosen = self.dice.pick(some) if first else self._class(f.name)
                plan.setdefault(f.name, chosen if there else NONE)
        plan.pop("threads", None)
        return plan

    def _allowed(self, name: str) -> tuple[str, ...]:
        """The classes of a factor, plain ones first."""
        return tuple(label for label in FACTORS[name] if (name, label) not in self._barred)

    def _class(self, name: str) -> str:
        classes = self._allowed(name)
        return classes[0] if self.dice.chance(_PLAIN) else self.dice.pick(classes)


def _seeds(dice: Dice) -> Iterator[tuple[Sketch, Plan]]:
    """The examples, with sizes that can be run in an interpreter; consumers in turn as they are."""
    schedule = parse_schedule(Source(dedent(_IN_TURN)))
    small = Sketch.of(DrawnHead(dice, head_classes.plan_of(schedule, WARP)))
    small = replace(small, facts=facts_of(schedule))
    yield small, small.plan(threads_class(small.program.main.threads))
    for name in examples.names():
        schedule = _example(name)
        if schedule is not None:
            empty = Sketch.of(DrawnHead(dice, head_classes.plan_of(schedule, WARP)))
            yield from resized(dice, replace(empty, facts=facts_of(schedule)))


def _example(name: str) -> Schedule | None:
    """One of the plain ones, or of newer targets' own: those in other folders are these with other
    sizes, or a search."""
    if "/" in name and not name.startswith("hopper/"):
        return None
    path = examples.path_of(name)
    try:
        return parse_schedule(Source(path.read_text(encoding="utf-8")))
    except ScheduleError:  # a set of values is not settled
        return None


def is_wild(number: int) -> bool:
    """Whether the ``number``-th schedule of its epoch was changed without a check of legality."""
    return number % _WILD == _WILD - 1
