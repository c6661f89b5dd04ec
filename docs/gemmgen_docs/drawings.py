"""Drawings of examples, as ``gemmgen draw`` makes them, and of measurements, inlined in a page."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from html import escape

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.cli.ladder_plot import plotted
from gemmgen.draw.kinds import KINDS, draw_scene, draw_several
from gemmgen.draw.marks import Cell, Drawing, Label, Mark
from gemmgen.draw.scene import Scene
from gemmgen.draw.svg import svg_of
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.schedule.extents import shape_of
from gemmgen_docs import measured
from gemmgen_docs.schedules import emitted, text
from gemmgen_docs.translation import ENGLISH, said, sentences

LONGEST = 300
"""Characters of a description that is a drawing's caption too.  A longer one is left to those who
do not see the drawing, and the caption says what kind it is."""


def drawing(names: str, kind: str, *extents: int, lang: str = ENGLISH) -> str:
    """An example's drawing, at M, N, K if they are given; its caption is what it shows.

    Several names with spaces between them give one drawing, for comparison.
    """
    found = _drawn(names, kind, extents)
    short = f"{KINDS[kind][0].upper()}{KINDS[kind][1:]}."
    caption = said(short, lang) if len(found.description) > LONGEST else ""
    return figure(translated(found, lang), f"gemmgen draw {names} --what {kind}", caption)


def plot(file: str, lang: str = ENGLISH) -> str:
    """The chart of the measurements in a file of ``data/``; empty if that is not there."""
    path = measured.DATA / file
    if not path.exists():
        return ""
    rows = json.loads(path.read_text(encoding="utf-8"))
    drawn = translated(plotted(rows), lang)
    return figure(drawn, f"gemmgen ladder --from docs/data/{file} --plot speeds.svg")


def figure(drawn: Drawing, command: str = "", caption: str = "") -> str:
    """A drawing with its caption, by default its description, and the command that draws it."""
    picture = svg_of(drawn, captions=False).strip()
    caption = escape(caption or drawn.description) + (f" <code>{command}</code>" if command else "")
    figure = f'<figure class="drawing">{picture}<figcaption>{caption}</figcaption></figure>'
    return f"\n{figure}\n"


@functools.cache
def _drawn(names: str, kind: str, extents: tuple[int, ...]) -> Drawing:
    scenes = {name: _scene(name, extents) for name in names.split()}
    return draw_several(kind, scenes) if len(scenes) > 1 else draw_scene(kind, *scenes.values())


def _scene(name: str, extents: tuple[int, ...]) -> Scene:
    schedule = emitted(text(name)).schedule
    shape = shape_of(schedule.gemm, extents) if extents else None
    return Scene(compile_kernel(schedule), shape, GPUS[DEFAULT])


def translated(drawn: Drawing, lang: str) -> Drawing:
    """A drawing whose title, caption, labels and tooltips are in ``lang``."""
    if lang == ENGLISH:
        return drawn

    def of_mark(mark: Mark) -> Mark:
        if isinstance(mark, Cell):
            return replace(mark, text=said(mark.text, lang), about=said(mark.about, lang))
        if isinstance(mark, Label):
            return replace(mark, text=said(mark.text, lang))
        return mark

    return replace(
        drawn,
        title=said(drawn.title, lang),
        description=sentences(drawn.description, lang),
        marks=tuple(map(of_mark, drawn.marks)),
        plot=tuple(
            replace(axes, across=said(axes.across, lang), up=said(axes.up, lang))
            for axes in drawn.plot
        ),
    )
