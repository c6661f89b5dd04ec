"""Which family, and how many blocks for a tile: what the model expects to end first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from gemmgen.analyze.gpus import Gpu
from gemmgen.errors import ScheduleError, UsageError
from gemmgen.ir.dtypes import DType
from gemmgen.pipeline import compile_source
from gemmgen.source import Source
from gemmgen.suggest.families import Plan, Shape, families, usual
from gemmgen.tune.facts import Facts, facts_of
from gemmgen.tune.model import block_count, estimate, residents

PARTS = (2, 3, 4, 6, 8, 9, 12, 16, 25, 36, 49, 64, 100, 144, 196, 256)
"""Parts of k that are tried; from 16 on they are added in groups of as many."""
STEPS = 4
"""Steps of k that a part has at the least: a shorter one is all beginning and end."""
GAIN = 0.8
"""Parts are taken where they take less than this share of the time without: they need memory."""
GROUPED = 16
RASTER = 2
"""Waves from which on the order of the blocks matters to the L2 cache."""


@dataclass(frozen=True)
class Option:
    """A plan, and what the model knows of it."""

    plan: Plan
    facts: Facts
    seconds: float

    @property
    def tiles(self) -> tuple[int, int]:
        return self.facts.tile[0], self.facts.tile[1]


@dataclass(frozen=True)
class Suggestion:
    """``chosen`` of ``options``, which has the best of each family, all of them whole in k."""

    shape: Shape
    gpu: Gpu
    chosen: Option
    options: tuple[Option, ...]

    @property
    def places(self) -> int:
        """Blocks that the GPU holds at once."""
        return self.gpu.sms * max(1, residents(self.chosen.facts, self.gpu))

    @property
    def blocks(self) -> int:
        return block_count(self.chosen.facts, self.shape)

    @cached_property
    def usual(self) -> Option | None:
        """What the strategy by size alone would take, where that is another tile."""
        size = usual(self.shape)
        found = [o for o in self.options if o.plan.family.size == size]
        if not found or self.chosen.plan.family.size == size:
            return None
        return min(found, key=lambda option: option.seconds)


def suggest(shape: Shape, dtype: DType, gpu: Gpu) -> Suggestion:
    """The schedule that the model likes best; raises ``UsageError`` where there is none."""
    if min(shape) < 1:
        raise UsageError("a shape to suggest a schedule for has extents of at least 1")
    whole = tuple(_whole(shape, dtype, gpu))
    split = (option for one in whole for option in _split(one, shape, gpu))
    best = min(whole, key=_seconds)
    parted = min(split, key=_seconds, default=best)
    chosen = parted if parted.seconds < GAIN * best.seconds else best
    if block_count(chosen.facts, shape) > RASTER * gpu.sms * residents(chosen.facts, gpu):
        chosen = replace(chosen, plan=replace(chosen.plan, raster=True))
    return Suggestion(shape, gpu, chosen, whole)


def _seconds(option: Option) -> float:
    return option.seconds


def _whole(shape: Shape, dtype: DType, gpu: Gpu) -> Iterator[Option]:
    """Each family that the GPU takes."""
    arch = int(gpu.arch.removeprefix("sm_").rstrip("a"))
    refusal: ScheduleError | None = None
    found = 0
    for family in families(dtype, arch):
        plan = Plan.of(family, shape, dtype, arch)
        try:
            emitted = compile_source(Source(plan.text))
        except ScheduleError as error:
            refusal = error
            continue
        facts = facts_of(emitted.program, emitted.interface)
        if residents(facts, gpu):
            found += 1
            yield Option(plan, facts, estimate(facts, shape, gpu))
    if not found:
        assert refusal is not None
        raise UsageError(f"there is no schedule for {dtype} on {gpu.name}: {refusal.message}")


def _split(option: Option, shape: Shape, gpu: Gpu) -> Iterator[Option]:
    """The same in parts of k, as long as all blocks fit on the GPU at once."""
    places = gpu.sms * residents(option.facts, gpu)
    steps = ceil(shape[2] / option.facts.tile[2])
    for parts in PARTS:
        facts = replace(option.facts, parts=parts)
        if parts * STEPS > steps or block_count(facts, shape) > places:
            return
        groups = int(parts**0.5) if parts >= GROUPED else 1
        facts = replace(facts, groups=groups)
        plan = replace(option.plan, parts=parts, groups=groups)
        yield Option(plan, facts, estimate(facts, shape, gpu))
