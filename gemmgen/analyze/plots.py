"""Pictures as the bytes of PNG files, by matplotlib, if it is installed."""

# matplotlib's annotations leave further keywords of its functions open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from gemmgen.analyze.explain import Explanation
from gemmgen.analyze.maps import NOBODY, Picture
from gemmgen.base.errors import CannotCheck

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INSTALL = "pip install matplotlib"


def _figure(width: float, height: float) -> Figure:
    """A figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise CannotCheck(f"--plot needs matplotlib, which is not installed: {INSTALL}") from None
    return Figure(figsize=(width, height), layout="constrained")


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=120)
    return file.getvalue()


def plot_pictures(pictures: Sequence[Picture]) -> bytes:
    """Each picture as a grid of cells, coloured by thread."""
    heights = [1 + 0.3 * len(p.rows) for p in pictures]
    width = max(3 + 0.35 * len(p.columns) for p in pictures)
    figure = _figure(width, sum(heights) + 0.5)
    grid = figure.subplots(len(pictures), 1, squeeze=False, height_ratios=heights)
    for (axes,), picture in zip(grid, pictures, strict=True):
        cells = [[float("nan") if c == NOBODY else float(c) for c in r.lanes] for r in picture.rows]
        axes.imshow(cells, cmap="turbo", vmin=0, vmax=31, aspect="auto", alpha=0.6)
        for y, row in enumerate(picture.rows):
            for x, lane in enumerate(row.lanes):
                if lane != NOBODY:
                    axes.text(x, y, str(lane), ha="center", va="center", fontsize=7)
        axes.set_xticks(range(len(picture.columns)), picture.columns, fontsize=7)
        axes.set_yticks(range(len(picture.rows)), [r.label for r in picture.rows], fontsize=7)
        axes.set_title("\n".join((picture.title, *picture.notes)), fontsize=9)
    return _png(figure)


def plot_roofline(explanation: Explanation) -> bytes:
    """Memory's slope, the peak, every other bound as a line, and what this kernel can reach."""
    roofline = explanation.roofline
    figure = _figure(8, 5.5)
    axes = figure.add_subplot()
    at = roofline.intensity
    low, high = min(at, roofline.ridge) / 8, max(at, roofline.ridge) * 8
    xs = [low, roofline.ridge, high]
    ys = [roofline.peak / 1e12 * min(1.0, x / roofline.ridge) for x in xs]
    axes.loglog(xs, ys, color="black", label="device memory and FP32 peak")
    for number, bound in enumerate(roofline.bounds):
        if bound.name != "device memory":
            y = roofline.flops / bound.seconds / 1e12
            label = f"{bound.name}: {y:.1f}"
            axes.axhline(y, label=label, linestyle="--", color=f"C{number}")
    top = roofline.attainable / 1e12
    axes.loglog([at], [top], marker="o", color="red", label=f"attainable: {top:.1f} TFLOP/s")
    m, n, k = explanation.shape
    axes.set_title(f"{explanation.kernel.emitted.name} at {m} x {n} x {k}, {explanation.gpu.name}")
    axes.set_xlabel("operations a byte of device memory")
    axes.set_ylabel("TFLOP/s")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    return _png(figure)
