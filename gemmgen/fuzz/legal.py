"""Whether a combination of directives is legal, by running the passes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from gemmgen.base.errors import Refusal
from gemmgen.fuzz.facts import FactDirectives, Facts
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.intent import Intent
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.target import fill_warps
from gemmgen.passes.base import Pass
from gemmgen.passes.build import build
from gemmgen.passes.intent import intent_of
from gemmgen.passes.ladder import passes_of
from gemmgen.schedule.model import Schedule

_SIDE, _AREA, _ACCUMULATORS, _STAGED, _SHARED = 256, 8192, 64, 64, 48 * 1024
"""At most: elements of a tile along a letter and in all, accumulators of a thread, elements that a
thread stages, and bytes of shared memory."""
_BRANCHES = 3
"""Passes whose results are kept for one program: one that is refused does not displace others."""

_INTENTS = 64
"""Intents whose rewritten programs are kept."""


class Refused(Exception):
    """``directive`` is the one whose pass refuses; "" if the threads or sizes are illegal."""

    def __init__(self, directive: str = ""):
        super().__init__(directive)
        self.directive = directive


class Crash(Exception):
    """A pass that raises something else at ``schedule``: a bug."""

    def __init__(self, schedule: Schedule):
        super().__init__()
        self.schedule = schedule


class _Rewritten:
    """A program, and the results of the last passes that were applied to it."""

    def __init__(self, program: Program):
        self.program = program
        self._next: list[tuple[Pass, _Rewritten | None]] = []

    def by(self, rung: Pass) -> _Rewritten:
        """The result of a pass; raises ``Refused``."""
        found = next((known for known in self._next if _same(known[0], rung)), None)
        if found is None:
            found = rung, self._applied(rung)
        else:
            self._next.remove(found)
        self._next[_BRANCHES - 1 :] = []
        self._next.insert(0, found)
        if found[1] is None:
            raise Refused(rung.SPEC.name)
        return found[1]

    def _applied(self, rung: Pass) -> _Rewritten | None:
        with suppress(Refusal):
            return _Rewritten(rung.apply(self.program))
        return None


def _same(one: Pass, other: Pass) -> bool:
    return type(one) is type(other) and one == other


class Legality:
    """Rewrites the program of one problem with many combinations of directives.

    What is equal up to a pass, in the last combinations, is not rewritten again.
    """

    def __init__(self, problem: Schedule):
        self._problem, self.directives = problem, FactDirectives(problem.gemm)
        self._naive = build(problem)
        self._first: dict[Intent, _Rewritten] = {}

    def program(self, facts: Facts) -> Program:
        """The program that ``facts`` make; raises ``Refused`` if it is illegal, if its threads do
        not fill whole warps, or if it is too large to be run in an interpreter."""
        schedule = replace(self._problem, directives=self.directives.of(facts))
        try:
            rewritten = self._begun(intent_of(schedule))
            for rung in passes_of(schedule):
                rewritten = rewritten.by(rung)
                if not _is_small(rewritten.program.main):  # no pass makes a tile smaller
                    raise Refused
        except Refused:
            raise
        except Exception as bug:
            raise Crash(schedule) from bug
        if not _has_threads(rewritten.program.main):
            raise Refused
        return rewritten.program

    def _begun(self, intent: Intent) -> _Rewritten:
        """The naive program with an intent; the last few are kept."""
        found = self._first.pop(intent, None) or _Rewritten(replace(self._naive, intent=intent))
        self._first[intent] = found
        if len(self._first) > _INTENTS:
            del self._first[next(iter(self._first))]
        return found


def _is_small(main: Kernel) -> bool:
    sizes = [size for _, size in main.work.tile]
    tiles = [b for b in main.buffers if b.space is Space.SHARED]
    shared = sum(
        b.stages * BYTES[b.dtype] * b.extent(x) * b.extent(y) for b in tiles for x, y in [b.letters]
    )
    return max(sizes) <= _SIDE and sizes[0] * sizes[1] <= _AREA and shared <= _SHARED


def _has_threads(main: Kernel) -> bool:
    """Whether there are enough for the tile, and whole warps."""
    pipeline = pipeline_of(main)
    staged = sum(size for _, size in main.work.tile) * (pipeline.step if pipeline else 0)
    by_tma = {copy.mode for copy in pipeline.produce} == {"tma"} if pipeline else False
    dealt = by_tma or staged <= _STAGED * main.copying_threads
    return fill_warps(main.threads) and main.spread.registers <= _ACCUMULATORS and dealt
