"""The kinds of drawings: each has a file of its name in this folder, imported when it is drawn."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import cast

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.draw.marks import Drawing
from gemmgen.draw.scene import Scene
from gemmgen.draw.stack import stacked
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.launch_shape import Shape
from gemmgen.schedule.model import Schedule

KINDS = {
    "tiles": "the matrices, cut into the tiles of blocks and the steps along k",
    "threads": "the warps and threads that own the elements of a block's tile of C",
    "fragments": "a thread's registers for one k, and the order of its multiply-adds",
    "registers": "the registers of a thread's multiply-adds and their banks, from machine code",
    "copies": "the threads that copy the elements of a tile, and their places in shared memory",
    "banks": "a warp's costliest requests of shared memory, with and without pad and swizzle",
    "roofline": "the attainable speed on a GPU: bounds by memory, arithmetic and other resources",
    "error": "rounding of f32 accumulators as K grows: a model, and the bound (dotted)",
    "hierarchy": "the elements that move between levels of memory, and how often each is used",
    "timeline": "a block's loads, stores, barriers and arithmetic, and their overlap",
}
"""Each kind's file, which has a function ``draw(scene)``, and what it shows.  If there is more to
several kernels than their drawings under one another, it has ``together(scenes)`` too."""


def draw(kind: str, schedule: Schedule, shape: Shape | None, gpu: Gpu) -> Drawing:
    """The drawing of a kind in ``KINDS``; without a shape, one that shows a few tiles.

    Raises ``ScheduleError`` for a mistake in the schedule, ``UsageError`` for a shape that its
    kernel does not take.
    """
    return draw_scene(kind, Scene(compile_kernel(schedule), shape, gpu))


def draw_scene(kind: str, scene: Scene) -> Drawing:
    """The drawing of a compiled kernel."""
    return cast(Callable[[Scene], Drawing], _module(kind).draw)(scene)


def draw_several(kind: str, scenes: Mapping[str, Scene]) -> Drawing:
    """Kernels by their names in one drawing: as the kind draws them ``together``, or else under one
    another."""
    together = getattr(_module(kind), "together", None)
    if together is not None:
        return cast(Callable[[Mapping[str, Scene]], Drawing], together)(scenes)
    drawings = [(name, draw_scene(kind, scene)) for name, scene in scenes.items()]
    return stacked(f"{', '.join(scenes)}: {KINDS[kind]}", drawings)


def _module(kind: str) -> ModuleType:
    return importlib.import_module(f"gemmgen.draw.{kind}")
