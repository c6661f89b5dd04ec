"""Plots by matplotlib: axes with lines that differ without color, too, and a legend."""

from __future__ import annotations

import io
import re
from hashlib import sha256
from html import escape
from importlib import import_module
from math import log10
from textwrap import wrap
from typing import Any
from warnings import catch_warnings, filterwarnings

from gemmgen.base.errors import UsageError
from gemmgen.base.installing import install
from gemmgen.base.units import numeral
from gemmgen.draw.marks import Axes, Drawing, Series
from gemmgen.draw.palette import BACKGROUND, TEXT

CLASS = "gemmgen-plot"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6ff0", "#8c8c8c")
"""Okabe and Ito's, which readers with color blindness tell apart, on light and on dark pages."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
_INK = "#010203"
"""A placeholder for the page's text color, which is replaced when the file is written."""
_SMALL = 1e-3
"""An axis from here down has its numbers as powers of ten."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DOTS, _CAPTION = 72.0, 110
"""Pixels of an inch; characters of a line below a plot."""


def plot_svg(drawing: Drawing, *, captions: bool) -> str:
    """The file; with ``captions`` its title and its description are in it.

    Raises ``UsageError`` without matplotlib.
    """
    try:
        matplotlib: Any = import_module("matplotlib")
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            f"a plot needs matplotlib: {install('plot')}; text needs nothing"
        ) from None
    ink = {"text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _INK}
    ink |= {"xtick.color": _INK, "ytick.color": _INK}
    style: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": "gemmgen", **ink}
    file = io.StringIO()
    with matplotlib.rc_context(style):
        size = drawing.width / _DOTS, drawing.height / _DOTS
        figure: Any = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        places = figure.subplots(len(drawing.plot), squeeze=False)[:, 0]
        for at, (place, axes) in enumerate(zip(places, drawing.plot, strict=True)):
            _draw(place, axes)
            if at == 0:
                named = place.get_legend_handles_labels()
                figure.legend(*named, loc="outside right center", frameon=False)
        if captions:
            figure.suptitle(drawing.title, x=0.02, horizontalalignment="left")
            figure.supxlabel("\n".join(wrap(drawing.description, _CAPTION)), fontsize="small")
        with catch_warnings():
            # Words stay words in the file: the reader's font has glyphs that matplotlib's lacks.
            filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _page_svg(drawing, file.getvalue())


def _draw(place: Any, axes: Axes) -> None:
    number = 0
    for series in axes.series:
        across, up = zip(*series.points, strict=True)
        of = number - 1 if series.style == "bound" else number
        name = "_" if series.style == "bound" else series.name  # none in the legend
        place.plot(across, up, label=name, **_style(series, of))
        number += series.style in ("line", "point")
    if axes.logarithmic:
        _logarithmic(place)
    else:
        place.set_ylim(bottom=0)
    if axes.categories:
        place.set_xticks(range(len(axes.categories)), axes.categories)
    place.set_xlabel(axes.across)
    place.set_ylabel(axes.up)
    place.grid(visible=True, alpha=0.25)
    place.spines[["top", "right"]].set_visible(False)


def _logarithmic(place: Any) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, written in full; of small numbers at the powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    def written(value: float, _: object) -> str:
        return numeral(value)

    place.set_xscale("log")
    place.set_yscale("log")
    for axis in (place.xaxis, place.yaxis):
        small = axis.get_view_interval()[0] < _SMALL
        axis.set_major_locator(LogLocator(subs=(1,) if small else (1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(_power if small else written))


def _power(value: float, _: object) -> str:
    """``10⁻⁷``"""
    return f"10{str(round(log10(value))).translate(_RAISED)}"


def _style(series: Series, number: int) -> dict[str, Any]:
    color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
    match series.style:
        case "reference":
            return {"color": _INK, "linewidth": 2.2}
        case "limit":
            return {"color": _INK, "linestyle": ":", "linewidth": 1.2}
        case "point":
            return {"color": color, "marker": marker, "markersize": 9, "linestyle": "none"}
        case "bound":
            return {"color": color, "linestyle": ":", "linewidth": 1.6}
        case "line":
            dashes = ("-", "--", "-.", ":")[number // len(COLORS) % 4]
            return {"color": color, "marker": marker, "markersize": 5, "linestyle": dashes}


def _page_svg(drawing: Drawing, text: str) -> str:
    """The plot for inlining in a page: text has the page's color, and ids are unique."""
    name = f"gemmgen-{sha256(repr(drawing).encode()).hexdigest()[:10]}"
    text = text[text.index("<svg") :]
    text = re.sub(r'\b(id="|xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace(_INK, "currentColor")
    text = re.sub(r'(width|height)="([0-9.]+)pt"', r'\1="\2"', text, count=2)
    title, desc = f"{name}-title", f"{name}-desc"
    text = text.replace(
        "<svg ", f'<svg class="{CLASS}" role="img" aria-labelledby="{title} {desc}" ', 1
    )
    head = (
        f'<title id="{title}">{escape(drawing.title)}</title>'
        f'<desc id="{desc}">{escape(drawing.description)}</desc>'
        f"<style>{_theme()}</style>"
    )
    end = text.index(">") + 1
    return "".join(f"{x.rstrip()}\n" for x in f"{text[:end]}{head}{text[end:]}".splitlines())


def _theme() -> str:
    """Text and background of a file by itself; a page of Material for MkDocs has its own."""
    svg = f"svg.{CLASS}"
    light, dark = (
        f"{{color:{text};background:{paper}}}"
        for text, paper in ((TEXT.light, BACKGROUND.light), (TEXT.dark, BACKGROUND.dark))
    )
    return (
        f"{svg}{light}@media (prefers-color-scheme:dark){{{svg}{dark}}}"
        f'[data-md-color-scheme="default"] {svg}{light}[data-md-color-scheme="slate"] {svg}{dark}'
    )
