"""Rings of stages: the copies that take turns alike, and the names of what counts them."""

from __future__ import annotations

from dataclasses import dataclass

from gemmgen.ir.expr import Var
from gemmgen.ir.nodes import Copy, Kernel, Pipeline


@dataclass(frozen=True)
class Ring:
    """Copies whose tiles have the same number of stages, and the names of the ring's variables."""

    copies: tuple[Copy, ...]
    stages: int
    prefix: str

    @property
    def stage(self) -> Var:
        """The stage that is read now."""
        return Var(f"{self.prefix}stage")

    @property
    def fill(self) -> Var:
        """The stage that is written now: the one read in the step before."""
        return Var(f"{self.prefix}fill")

    @property
    def next(self) -> Var:
        """The first k of the tile that is loaded now."""
        return Var(f"{self.prefix}next_")

    @property
    def count(self) -> Var:
        """The constant that counts the stages."""
        return Var(f"{self.prefix}STAGES")


def rings(kernel: Kernel, pipeline: Pipeline | None) -> tuple[Ring, ...]:
    """The rings of a pipeline; one ring's variables need no prefix."""
    if pipeline is None:
        return ()
    counts: dict[int, list[Copy]] = {}
    for copy in pipeline.produce:
        stages = kernel.buffer(copy.dst).layout.stages
        if stages > 1:
            counts.setdefault(stages, []).append(copy)
    single = len(counts) == 1
    return tuple(
        Ring(tuple(copies), stages, "" if single else f"{copies[0].src}_")
        for stages, copies in counts.items()
    )
