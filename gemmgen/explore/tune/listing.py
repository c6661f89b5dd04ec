"""``tune --list``: the legal points with their estimates, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from gemmgen.analyze.section import Section
from gemmgen.explore.cost import estimate, issue_slots, launched
from gemmgen.explore.tune.legal_points import Legal, Shape
from gemmgen.explore.tune.tuner import Task, rank
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.launch_shape import spelled

REASONS = 20
"""Reasons for refusals that are listed, the commonest first."""


def sections(task: Task, gpu: Gpu) -> tuple[Section, ...]:
    """Every legal point by its estimate, fastest first, and the reasons against the others."""
    census, shapes, keys = task.census, task.shapes, task.space.open_keys
    figures = ("threads", "shared", "registers", "blocks/SM", "FFMA", "intensity")
    waved = tuple(f"waves, {_spelled(shape)}" for shape in shapes)
    speed = tuple(f"TFLOP/s, {_spelled(shape)}" for shape in shapes)
    ranked = rank(census.legal, shapes, gpu)
    rows = tuple(
        (
            str(position),
            *_figures(point, shapes, gpu),
            *map(str, map(dict(point.settings).get, keys)),
        )
        for position, point in enumerate(ranked, 1)
    )
    title = f"{len(ranked):,} legal schedules of {census.points:,} points, ranked for {gpu.name}"
    note = "registers and speed are estimated, for the ranking only"
    found = [Section(title, ("", *figures, *waved, *speed, *keys), rows, (note,))]
    if census.refused:
        common = census.refused.most_common(REASONS)
        reasons = tuple((f"{count:,}", reason) for reason, count in common)
        more = len(census.refused) - len(common)
        notes = (f"and {more:,} reasons more",) if more else ()
        found.append(Section("refused", ("points", "reason"), reasons, notes))
    return tuple(found)


def as_json(task: Task, gpu: Gpu) -> dict[str, object]:
    """The same for scripts."""
    census, shapes = task.census, task.shapes
    ranked = rank(census.legal, shapes, gpu)
    return {
        "points": census.points,
        "legal": len(ranked),
        "refused": dict(census.refused.most_common()),
        "gpu": gpu.name,
        "shapes": [list(shape) for shape in shapes],
        "sets": {key: list(values) for key, values in task.space.sets.items()},
        "ranked": [
            {
                "point": point.number,
                "settings": dict(point.settings),
                "threads": point.block.threads,
                "shared": point.block.shared,
                "registers": point.block.registers,
                "estimated_ms": [
                    1e3 * estimate(launched(point.block, shape, gpu), gpu) for shape in shapes
                ],
            }
            for point in ranked
        ],
    }


def _figures(point: Legal, shapes: Sequence[Shape], gpu: Gpu) -> Iterator[str]:
    block, (rows, columns, _) = point.block, point.block.tile
    launches = [launched(block, shape, gpu) for shape in shapes]
    share = launches[0].fmas / issue_slots(launches[0])
    yield from (str(block.threads), f"{block.shared:,}", str(block.registers))
    yield from (str(launches[0].resident), f"{share:.0%}")
    yield f"{rows * columns / (rows + columns):.0f}"
    yield from (f"{x.blocks / (gpu.sms * max(1, x.resident)):.2f}" for x in launches)
    for shape, launch in zip(shapes, launches, strict=True):
        yield f"{2 * prod(shape) / estimate(launch, gpu) / 1e12:.1f}"


def _spelled(shape: Shape) -> str:
    return spelled(shape) if len(set(shape)) > 1 else str(shape[0])
