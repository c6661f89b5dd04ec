"""Schedules from a seed, each with as many new pairs of classes as possible.

As in coverage-guided fuzzing, sketches are kept by their classes: another schedule with a class
begins from one of them.  The examples are the first.  Legality is checked elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from itertools import count

from gemmgen.fuzz.climb import Climb
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
from gemmgen.fuzz.facts import SLOTS
from gemmgen.fuzz.growth import Sketch, grow
from gemmgen.fuzz.head_classes import DRAWN, NONE, Plan
from gemmgen.fuzz.legal import Crash
from gemmgen.fuzz.seeds import seeds
from gemmgen.fuzz.unseen import Unseen
from gemmgen.fuzz.writing import Written, crashed, wild, written
from gemmgen.ir.atoms import ATOMS, VIA, Atom

_TRIES = 3
"""How often a pair is wanted, until it is given up."""
_PAIRS = 4
"""Pairs that are wanted of one schedule, until it has one."""
_WILD = 16
"""Every N schedules one is changed without asking whether it stays legal."""
_KNOWN = 4
"""Sketches that are kept of each class."""
_ENGINE = 5
"""Every N schedules one has its tiles copied by TMA: rarely is that legal where
no one wants it, and much is legal beside it alone."""
_BESIDE = {"persistent": "yes", "warp_specialize": "yes", "cache_shared C": "kept"}
"""What half of those schedules have each, where it is legal."""
_BOXED: tuple[Class, ...] = (("async_copy A", "tma"), ("async_copy B", "tma"))
_BY_MATRICES = {
    **{"order C": "mn", "vectorize C.global": "2"},
    **{"cache_shared C": "kept", "async_copy C": "tma"},
}
"""How half of those that read tiles in place store C: of 16 bits, so that ``stmatrix`` does."""
_IN_TURNS = 0.3
"""How many of them have ping-pong consumers."""
_TURNS: Class = ("warp_specialize order", "pingpong")
_CORES = 3
"""Every N of the others one multiplies on tensor cores, by each way as often, and by each
atom of a way."""
_MULTIPLYING = ("types", "target", "tensor_core via", "decompose into", "scales")
"""What such a schedule keeps of its sketch, as its atom follows from it; and scales, as few
intervals of promotion go with them."""
_ORDERS = ("order A", "order B")
"""What it keeps, too, where few sizes go with some of them: where tiles are read in place."""
_PLAIN = 0.35
"""How likely a choice is a factor's first class."""
_FRESH = 0.25
"""How often a schedule begins from an empty one, although a sketch with a wanted class is known."""
_LOST = 6
"""How often a class that no schedule had yet is wanted, until it is given up."""
_REDRAWN = 8
"""How often a schedule that was drawn before is redrawn."""
_WORD = re.compile(r"\w+")


def _of_ways() -> Iterator[tuple[Atom, ...]]:
    for atoms in VIA.values():
        for splits in (False, True):
            found: tuple[Atom, ...] = tuple(a for a in atoms if bool(ATOMS[a].splits) == splits)
            if found:
                yield found


_WAYS = tuple(_of_ways())
"""The atoms of each instruction, those that split operands apart."""


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
        self._multiplying: dict[Atom, dict[tuple[str, ...], list[Sketch]]] = {}
        for sketch, plan in seeds(self.dice):
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
        elif number % _CORES == 0:
            climb = self._multiplied()
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
        """From a sketch whose tiles TMA copies, with what is legal beside it alone."""
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

    def _multiplied(self) -> Climb:
        """From a sketch on tensor cores, whose atom it keeps; where tiles are read in place, with
        what is legal beside TMA alone."""
        atoms: list[Atom] = [a for a in self.dice.pick(_WAYS) if a in self._multiplying]
        if not atoms:
            return self._begun()
        atom = self.dice.pick(atoms)
        sketch = self.dice.pick(self.dice.pick([*self._multiplying[atom].values()]))
        in_place, plan = ATOMS[atom].in_place, sketch.plan(NONE)
        kept = (*_MULTIPLYING, *_ORDERS) if in_place else _MULTIPLYING
        wanted = {name: plan[name] for name in kept}
        if in_place:
            wanted |= {one: label for one, label in _BESIDE.items() if self.dice.chance(0.5)}
            wanted |= _BY_MATRICES if self.dice.chance(0.5) else {}
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
        of_atom = self._multiplying.setdefault(sketch.program.main.spread.atom, {})
        orders = of_atom.setdefault(tuple(plan[name] for name in _ORDERS), [])
        orders[:] = [*orders, sketch][-_KNOWN:]
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


def is_wild(number: int) -> bool:
    """Whether the ``number``-th schedule of its epoch was changed without a check of legality."""
    return number % _WILD == _WILD - 1
