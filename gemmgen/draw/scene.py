"""The subject of a drawing: a kernel, a shape and a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.base.record import record
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.edit import pipeline_of, tile_of
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.problem import Problem, Tensor

TILES = 4
"""Tiles along each side of C in a drawing without a given shape."""
STEPS = 6
"""Steps along k of each part of a sum in such a drawing."""
UNTILED = 16
"""The extent of k in such a drawing, if k is not tiled."""


@record
class Scene:
    """``given`` is the shape that a user asked for, if one did."""

    kernel: AnalyzedKernel
    given: Shape | None
    gpu: Gpu

    @property
    def main(self) -> Kernel:
        return self.kernel.program.main

    @property
    def problem(self) -> Problem:
        return self.kernel.program.problem

    @property
    def written(self) -> Problem:
        """The problem with the roles of the ``gemm`` line, where instructions have others."""
        return self.problem.written

    @property
    def step(self) -> int | None:
        """Elements of a step along k; None if k is not tiled."""
        pipeline = pipeline_of(self.main)
        return pipeline.step if pipeline else None

    def staged(self, operand: Tensor) -> bool:
        """Whether the block has a tile of it in shared memory."""
        return tile_of(self.main, operand.name) is not None

    def shape(self, otherwise: int | None = None) -> Shape:
        """The shape that was asked for; if none was, a cube of ``otherwise``, or a few tiles, or
        more where the schedule assumes multiples.

        Raises ``UsageError`` for a shape that the kernel does not take.
        """
        if self.given is not None:
            arguments_of(self.kernel.lowered.interface, self.problem, self.given)
            return self.given
        if otherwise is not None:
            return self._assumed(dict.fromkeys(self.problem.letters[:3], otherwise))
        return self._tiles(TILES, STEPS)

    def least(self) -> Shape:
        """One tile and one step along k of each part, or as few as the kernel takes."""
        return self._tiles(1, 1)

    def _tiles(self, tiles: int, steps: int) -> Shape:
        """This many tiles along both sides of C."""
        problem, work, step = self.problem, self.main.work, self.step
        wanted = {letter: tiles * work.size(letter) for letter in problem.letters[:2]}
        wanted[problem.k] = steps * work.parts * step if step else UNTILED
        return self._assumed(wanted)

    def _assumed(self, wanted: Mapping[str, int]) -> Shape:
        """The extents of rows, columns and k, at least those ``wanted``, and batches of one."""
        names = {letter: self.kernel.lowered.interface.extent(letter) for letter in wanted}
        found: list[int] = []
        for letter in wanted:
            size = max(wanted[x] for x in wanted if names[x] == names[letter])
            facts = (x for x in self.kernel.program.facts if x.name == names[letter])
            by = lcm(*(fact.divisor for fact in facts if fact.divisor))
            found.append(-(-size // by) * by)
        return (*found, *[1] * len(self.problem.batch))
