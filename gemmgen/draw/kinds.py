"""The kinds of drawings: each has a file of its name in this folder, imported when it is drawn."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from gemmgen.analyze.explain import compile_kernel
from gemmgen.draw.marks import Drawing
from gemmgen.draw.scene import Scene
from gemmgen.gpu.gpus import Gpu
from gemmgen.schedule.extents import Shape
from gemmgen.schedule.model import Schedule

KINDS = {
    "tiles": "the matrices, cut into the tiles of blocks and the steps along k",
    "threads": "which warp and which thread has which elements of a block's tile of C",
}
"""Each kind's file, which has a function ``draw(scene)``, and what it shows."""


def draw(kind: str, schedule: Schedule, shape: Shape | None, gpu: Gpu) -> Drawing:
    """The drawing of a kind in ``KINDS``; without a shape, one that shows a few tiles.

    Raises ``ScheduleError`` for a mistake in the schedule, ``UsageError`` for a shape that its
    kernel does not take.
    """
    module = importlib.import_module(f"gemmgen.draw.{kind}")
    make = cast(Callable[[Scene], Drawing], module.draw)
    return make(Scene(compile_kernel(schedule), shape, gpu))
