"""What pipelines through stages of shared memory have in common, however their tiles are copied: a
prologue fills the stages, and each step of the loop over tiles multiplies one and copies another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from gemmgen.base.record import record
from gemmgen.expand.k_range import first_tile, k_range_of
from gemmgen.expand.ring import (
    CopyTo,
    Ring,
    crosses_tiles,
    fill_in_any_case,
    first_fragments,
    if_in_range,
    over_tiles,
    steps_origins,
    steps_reading_ahead,
)
from gemmgen.ir.control import Block
from gemmgen.ir.expanded import Timed
from gemmgen.ir.expr import Expr, Var
from gemmgen.ir.nodes import Kernel, Pipeline, Program


@record
class StagedPipeline(ABC):
    """The expansion of one pipeline, by a way of copying that is a subclass."""

    program: Program
    kernel: Kernel
    pipeline: Pipeline

    def expand(self) -> tuple[Timed, ...]:
        body = self._body_reading_ahead() if self._crosses() else self._body()
        return (
            *first_tile(self.program, self.kernel, self.pipeline.letter),
            *self._prologue(),
            over_tiles(self.program, self.kernel, self.pipeline, body),
            *self._drain(),
        )

    @abstractmethod
    def _prologue(self) -> tuple[Timed, ...]:
        """Before the loop: the first tiles."""

    @abstractmethod
    def _body(self) -> tuple[Timed, ...]:
        """A step that reads one tile's fragments."""

    @abstractmethod
    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        """A step that ends with the next tile's first fragments."""

    def _drain(self) -> tuple[Timed, ...]:
        """After the loop: waits for what was started and not used."""
        return ()

    def _crosses(self) -> bool:
        return crosses_tiles(self.kernel, self.pipeline)

    def _start(self) -> Expr:
        """The first index of the contracted letter."""
        return k_range_of(self.program, self.kernel, self.pipeline.letter).start

    def _if_in_range(self, origin: Expr, body: tuple[Timed, ...]) -> tuple[Timed, ...]:
        return if_in_range(self.program, self.pipeline, origin, body)

    def _fill_in_any_case(self, ring: Ring, number: Var, copies: CopyTo) -> tuple[Timed, ...]:
        return fill_in_any_case(self.program, self.pipeline, ring, number, copies)

    def _first_fragments(self) -> Timed:
        return first_fragments(self.program, self.kernel, self.pipeline)

    def _multiply(self, steps: tuple[Timed, ...]) -> Timed:
        return Block("multiply the tile", steps_origins(self.kernel, self.pipeline), steps)

    def _multiply_reading_ahead(self, ring: Ring, note: str, publish: tuple[Timed, ...]) -> Timed:
        steps = steps_reading_ahead(self.kernel, self.pipeline, ring, note, publish)
        return self._multiply((steps,))
