"""What a drawing says, read from the words of its cells: independent of how it was made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.base.source import Source
from gemmgen.draw.kinds import draw_scene
from gemmgen.draw.marks import Drawing
from gemmgen.draw.scene import Scene
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.ir.launch_shape import Shape
from gemmgen.language import parse_schedule
from gemmgen.schedule import examples
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.read import read_source

ALL = [n for n in examples.names() if not n.startswith("spaces/")]
_RANGE = re.compile(r"(\w+) (\d+)(?:\.\.(\d+))?")


def schedule_of(name: str) -> Schedule:
    return parse_schedule(read_source(str(examples.path_of(name))))


@lru_cache(maxsize=4)
def scene_of(name: str, shape: Shape | None = None) -> Scene:
    """The kinds of drawings of an example are drawn one after another: it is compiled once."""
    return Scene(compile_kernel(schedule_of(name)), shape, GPUS[DEFAULT])


def scene_of_text(text: str) -> Scene:
    return Scene(compile_kernel(parse_schedule(Source(text, "my.sched"))), None, GPUS[DEFAULT])


def drawn(name: str, kind: str, shape: Shape | None = None) -> Drawing:
    return draw_scene(kind, scene_of(name, shape))


def described(drawing: Drawing, form: str) -> Iterator[tuple[tuple[str, ...], dict[str, range]]]:
    """Of cells whose words begin with ``form`` (a regular expression): its groups, and the ranges
    of the letters in the brackets after it."""
    for cell in drawing.cells:
        found = re.fullmatch(rf"{form}: (\w+)\[(.*)\]", cell.about)
        if found:
            ranges = _RANGE.findall(found[found.re.groups])
            known = {x: range(int(a), int(b or a) + 1) for x, a, b in ranges}
            yield tuple(found.groups()[:-1]), known
