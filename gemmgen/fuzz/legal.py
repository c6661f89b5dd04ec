"""Whether a combination of directives is legal, by running the passes."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import Refusal
from gemmgen.fuzz.facts import Facts, directives
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Program
from gemmgen.lower.limits import fill_warps
from gemmgen.passes.base import Pass
from gemmgen.passes.build import build
from gemmgen.passes.ladder import passes_of
from gemmgen.schedule.model import Schedule

_SIDE, _AREA, _SUMS, _STAGED, _SHARED = 256, 8192, 64, 64, 48 * 1024
"""At most: elements of a tile along a letter and in all, sums of a thread, elements that a thread
stages, and bytes of shared memory."""


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


class Legality:
    """Rewrites the program of one problem with many combinations of directives.

    Programs of equal directives up to a pass are cached.
    """

    def __init__(self, problem: Schedule):
        self._problem, self.gemm = problem, problem.gemm
        self._passes: list[Pass] = []
        self._programs = [build(problem)]

    def program(self, facts: Facts) -> Program:
        """The program that ``facts`` make; raises ``Refused``."""
        schedule = replace(self._problem, directives=directives(facts, self.gemm))
        try:
            return self._rewritten(passes_of(schedule))
        except Refused:
            raise
        except Exception as bug:
            raise Crash(schedule) from bug

    def _rewritten(self, passes: tuple[Pass, ...]) -> Program:
        known = 0
        while known < min(len(passes), len(self._passes)) and _same(
            passes[known], self._passes[known]
        ):
            known += 1
        del self._passes[known:], self._programs[known + 1 :]
        for rung in passes[known:]:
            try:
                program = rung.apply(self._programs[-1])
            except Refusal:
                raise Refused(rung.SPEC.name) from None
            self._passes.append(rung)
            self._programs.append(program)
        return self._programs[-1]

    def runnable(self, facts: Facts) -> Program:
        """The program that ``facts`` make, if its threads fill whole warps and it is small enough
        to be run in an interpreter; else raises ``Refused``."""
        program = self.program(facts)
        if not fill_warps(program.main.spread.threads) or not _is_small(program):
            raise Refused
        return program


def _same(one: Pass, other: Pass) -> bool:
    return type(one) is type(other) and one == other


def _is_small(program: Program) -> bool:
    main = program.main
    sizes = [size for _, size in main.work.tile]
    if max(sizes) > _SIDE or sizes[0] * sizes[1] > _AREA or main.spread.registers > _SUMS:
        return False
    pipeline = pipeline_of(main)
    step = pipeline.step if pipeline else 0
    tiles = [b for b in main.buffers if b.space is Space.SHARED]
    shared = sum(
        b.stages * BYTES[b.dtype] * b.extent(x) * b.extent(y) for b in tiles for x, y in [b.letters]
    )
    return step * sum(sizes) <= _STAGED * main.spread.threads and shared <= _SHARED
