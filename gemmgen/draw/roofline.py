"""The roofline: memory's slope, the peak, every other bound, and what a kernel can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log2

from gemmgen.analyze.explain import Explanation, explain
from gemmgen.draw.hierarchy import USUAL
from gemmgen.draw.marks import Axes, Drawing, Series
from gemmgen.draw.scene import Scene

MEMORY = "device memory"
"""The bound that is a slope."""
_WIDTH, _HEIGHT = 720.0, 420.0
_ACROSS = "operations for each byte of device memory"
_BAR = 50
"""Characters of the longest bar in text."""
TERA = 1e12


def draw(scene: Scene) -> Drawing:
    """Both axes are logarithmic; each bound of the kernel is a line."""
    return together({scene.kernel.emitted.name: scene})


def together(scenes: Mapping[str, Scene]) -> Drawing:
    """A point for each kernel; of several, the bound alone that each of them has."""
    found = {
        name: explain(scene.kernel.emitted.schedule, scene.shape(USUAL), scene.gpu, pads=False)
        for name, scene in scenes.items()
    }
    return roofline_drawing(found)


def roofline_drawing(found: Mapping[str, Explanation]) -> Drawing:
    """Of explanations by the names of their kernels, on one GPU."""
    first = next(iter(found.values()))
    m, n, k, *_ = first.shape
    return Drawing(
        f"{', '.join(found)}: roofline at {m} x {n} x {k}, {first.gpu.name}",
        " ".join(_sentence(name, e) for name, e in found.items()),
        _WIDTH,
        _HEIGHT,
        (),
        "\n\n".join(_text(name, e) for name, e in found.items()),
        (Axes(_ACROSS, "TFLOP/s", tuple(_series(found)), logarithmic=True),),
    )


def _series(found: Mapping[str, Explanation]) -> Iterator[Series]:
    """The roof, every other bound, and the point of each kernel."""
    rooflines = [e.roofline for e in found.values()]
    at = [x for r in rooflines for x in (r.intensity, r.ridge)]
    low, high = min(at) / 8, max(at) * 8
    for peak, ridge in dict.fromkeys((r.peak / TERA, r.ridge) for r in rooflines):
        roof = ((low, peak * low / ridge), (ridge, peak), (high, peak))
        yield Series(f"peak: {peak:.1f}", roof, "reference")
    for name, e in found.items():
        for said, rate in _bounds(name, e, len(found)):
            yield Series(said, ((low, rate), (high, rate)), "limit")
    for name, e in found.items():
        r = e.roofline
        yield Series(name, ((r.intensity, r.attainable / TERA),), "point")


def _bounds(name: str, e: Explanation, count: int) -> Iterator[tuple[str, float]]:
    """The label of each line, and its TFLOP/s."""
    r = e.roofline
    if count > 1:
        yield f"{name}: {r.attainable / TERA:.1f}, {r.binding.name}", r.attainable / TERA
        return
    for bound in r.bounds:
        if bound.name != MEMORY:
            rate = r.flops / bound.seconds / TERA
            yield f"{bound.name}: {rate:.1f}", rate


def _sentence(name: str, e: Explanation) -> str:
    r = e.roofline
    return (
        f"{name}: {r.intensity:.1f} operations for each byte of device memory, the ridge is at "
        f"{r.ridge:.1f}; at most {r.attainable / TERA:.1f} TFLOP/s, by {r.binding.name}."
    )


def _text(name: str, e: Explanation) -> str:
    """The bounds as bars on a logarithmic scale."""
    r = e.roofline
    rates = {bound.name: r.flops / bound.seconds / TERA for bound in r.bounds}
    rates |= {"peak": r.peak / TERA}
    least, wide = min(rates.values()) / 2, max(map(len, rates))
    doublings = log2(max(rates.values()) / least)
    lines = [f"{name}: at most TFLOP/s (bars are logarithmic)"]
    for bound, rate in sorted(rates.items(), key=lambda item: item[1]):
        mark = " <- attainable" if bound == r.binding.name else ""
        bar = "#" * round(_BAR * log2(rate / least) / doublings)
        lines.append(f"  {bound:<{wide}} {rate:>10,.1f}  {bar}{mark}")
    return "\n".join(lines)
