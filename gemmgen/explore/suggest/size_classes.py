"""The rule of thumb by size that tutorials give, and why a suggestion departs from it.

Below 512: tiles of 64 x 64 and one stage.  From 512 to 2048: 128 x 128 with everything.  Above
2048: 128 x 256, wide accesses and asynchronous copies.  The size is the side of a square with as
many elements as C.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod
from typing import TYPE_CHECKING

from gemmgen.base.record import record
from gemmgen.base.source import counted
from gemmgen.explore.suggest.sizes import blocks_of
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from gemmgen.explore.suggest.choose import Suggestion

TIE = 1.01
"""Estimates closer than that are alike."""


@record
class SizeClass:
    """``below`` is the first size of the next class; ``advice`` is what the rule says."""

    name: str
    below: float
    tile: tuple[int, int]
    advice: str


CLASSES = (
    SizeClass("small", 512, (64, 64), "below 512: tiles of 64 x 64, no double buffer"),
    SizeClass("medium", 2049, (128, 128), "512 to 2048: tiles of 128 x 128, all optimizations"),
    SizeClass("large", float("inf"), (128, 256), "above 2048: tiles of 128 x 256, async copy"),
)


def size_class(shape: tuple[int, ...]) -> SizeClass:
    """The class of M, N, K: by the elements of one C."""
    side = (shape[0] * shape[1]) ** 0.5
    return next(each for each in CLASSES if side < each.below)


def strategy(s: Suggestion) -> str:
    """One sentence: the class, and whether the suggestion follows its rule, or why not."""
    shape, known = s.request.shape, size_class(s.request.shape)
    said = f"size: {shape[0]} x {shape[1]} is {known.name} by the usual rule ({known.advice})"
    departures = tuple(_departures(s, known))
    return f"{said}, which this follows." if not departures else f"{said}; {' '.join(departures)}"


def _departures(s: Suggestion, known: SizeClass) -> Iterator[str]:
    """What is not as the rule says, each with its reason from the model."""
    plan = s.settled
    if plan.form.tile[:2] not in (known.tile, known.tile[::-1]):
        yield f"not followed: {_other_tile(s, known)}."
    elif known.name == "small" and plan.staged and plan.form.stages > 1:
        yield (
            f"its tile, but {counted(plan.form.stages, 'stage')}: with one, each of "
            f"{ceil(s.request.shape[2] / plan.form.tile[2])} steps along k waits for its copies."
        )
    elif known.name == "large" and plan.staged and not plan.asynchronous:
        yield "its tile, but copies go through registers."


def _other_tile(s: Suggestion, known: SizeClass) -> str:
    """Why the rule's tile is not taken: idle multiprocessors, or the estimate."""
    shape, sms = s.request.shape, s.request.gpu.sms
    rows, columns = known.tile
    tiles = ceil(shape[0] / rows) * ceil(shape[1] / columns) * prod(shape[3:])
    same = [o for o in s.options if o.plan.form.tile[:2] in (known.tile, known.tile[::-1])]
    found = f"{counted(tiles, 'tile')} of {rows} x {columns}"
    if not same:
        return f"no schedule with tiles of {rows} x {columns} fits these types and extents"
    best = min(same, key=lambda option: option.seconds)
    longer = best.seconds / s.chosen.seconds
    plan = best.plan
    blocks = plan.blocks if isinstance(plan, WarpgroupPlan) else blocks_of(plan)
    split = f", {counted(blocks, 'block')} with K split," if blocks > tiles else ""
    if tiles < sms:
        found += f"{split} on {sms} multiprocessors"
    else:
        found += f"{split}, {blocks / sms:.1f} blocks a multiprocessor,"
    alike = " (equal: the model does not distinguish them)" if longer < TIE else ""
    return f"{found} are estimated {longer:.2f} times as long{alike}"
