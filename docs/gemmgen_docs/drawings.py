"""Drawings of examples, as ``gemmgen draw`` makes them, inlined in a page."""

from __future__ import annotations

from html import escape

from gemmgen.draw.kinds import draw
from gemmgen.draw.svg import svg_of
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.schedule.extents import shape_of
from gemmgen_docs.schedules import emitted, text


def drawing(name: str, kind: str, *extents: int) -> str:
    """An example's drawing, at M, N, K if they are given; its caption is what it shows."""
    schedule = emitted(text(name)).schedule
    shape = shape_of(schedule.gemm, extents) if extents else None
    drawn = draw(kind, schedule, shape, GPUS[DEFAULT])
    picture = svg_of(drawn, captions=False).strip()
    caption = f"{escape(drawn.description)} <code>gemmgen draw {name} --what {kind}</code>"
    figure = f'<figure class="drawing">{picture}<figcaption>{caption}</figcaption></figure>'
    return f"\n{figure}\n"
