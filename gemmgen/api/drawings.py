"""``gemmgen draw`` as a function: a notebook shows what it returns.

gemmgen.drawing("tiled.sched", "tiles")
gemmgen.drawing({"one stage": "padded.sched", "two": "double_buffered.sched"}, "timeline").svg
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.api.kernels import AnySchedule, Settings, compile_any
from gemmgen.base.choices import check_choice
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.draw.kinds import KINDS, draw_scene, draw_several
from gemmgen.draw.marks import Drawing
from gemmgen.draw.scene import Scene
from gemmgen.draw.svg import svg_of
from gemmgen.draw.terminal import text_of
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.gpu.gpus import Gpu
from gemmgen.schedule.extents import AnyShape, shape_of


@record
class Drawn:
    """A drawing; ``str`` is its text for a terminal."""

    drawing: Drawing

    @property
    def svg(self) -> str:
        """A whole SVG file, with its title and what it shows as words."""
        return svg_of(self.drawing)

    def _repr_svg_(self) -> str:
        """What Jupyter shows."""
        return self.svg

    def __str__(self) -> str:
        return text_of(self.drawing)


def drawing(
    schedule: AnySchedule | Mapping[str, AnySchedule],
    what: str = next(iter(KINDS)),
    shape: AnyShape | None = None,
    *,
    gpu: str | Path | Gpu = "H200",
    arch: str | None = None,
    set: Settings | None = None,
) -> Drawn:
    """Draws ``schedule``: how it cuts the matrices, and who does what.

    ``what`` is a kind of ``gemmgen draw --what``; without ``shape`` a few tiles are drawn. Several
    schedules by their names are drawn together, to be compared.  No GPU is needed.  Raises
    ``ScheduleError`` for a mistake in a schedule, ``UsageError`` for a shape that its kernel does
    not take, and for what a kernel does not have.
    """
    check_choice("what", what, KINDS)
    found = gpu_named(gpu)
    if not isinstance(schedule, Mapping):
        return Drawn(draw_scene(what, _scene(schedule, shape, found, arch, set)))
    if not schedule:
        raise UsageError("no schedule was given")
    scenes = {name: _scene(one, shape, found, arch, set) for name, one in schedule.items()}
    return Drawn(draw_several(what, scenes))


def _scene(
    schedule: AnySchedule,
    shape: AnyShape | None,
    gpu: Gpu,
    arch: str | None,
    settings: Settings | None,
) -> Scene:
    found = compile_any(schedule, arch=arch, set=settings).schedule
    sizes = None if shape is None else shape_of(found.gemm, shape)
    return Scene(compile_kernel(found), sizes, gpu)
