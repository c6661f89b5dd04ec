"""The roofline: memory's slope, the peak, every other bound, and what a kernel can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log2

from gemmgen.analyze.explain import Explanation, explain
from gemmgen.analyze.roofline import Roofline
from gemmgen.draw.hierarchy import USUAL
from gemmgen.draw.marks import LOAD, Cell, Drawing, Label, Mark, Stroke, thread
from gemmgen.draw.scales import Scale, across, apart, upwards
from gemmgen.draw.scene import Scene

MEMORY = "device memory"
"""The bound that is a slope."""
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT = 56.0, 40.0, 560.0, 360.0, 320.0
_POINT, _LINE = 10.0, 16.0
_BAR = 50
"""Characters of the longest bar in text."""
TERA = 1e12


def draw(scene: Scene) -> Drawing:
    """Both axes are logarithmic; each bound of the kernel is a line."""
    return together({scene.kernel.emitted.name: scene})


def together(scenes: Mapping[str, Scene]) -> Drawing:
    """A point for each kernel; of several, the bound alone that each of them has."""
    found = {
        name: explain(scene.kernel.emitted.schedule, scene.shape(USUAL), scene.gpu)
        for name, scene in scenes.items()
    }
    return roofline_drawing(found)


def roofline_drawing(found: Mapping[str, Explanation]) -> Drawing:
    """Of explanations by the names of their kernels, on one GPU."""
    rooflines = [e.roofline for e in found.values()]
    lines = {said: rate for name, e in found.items() for said, rate in _bounds(name, e, len(found))}
    peaks = dict.fromkeys((r.peak / TERA, r.ridge) for r in rooflines)
    rates = [*lines.values(), *(peak for peak, _ in peaks)]
    x, y = _scales(rooflines, rates)
    marks: list[Mark] = [
        *across(x, y.start, "operations for each byte of device memory"),
        *upwards(y, x.start, "TFLOP/s"),
        *(_roof(x, y, peak, ridge) for peak, ridge in peaks),
    ]
    for rate in lines.values():
        marks.append(Stroke(((x.start, y.at(rate)), (x.stop, y.at(rate))), LOAD, dashed=True))
    for number, (name, e) in enumerate(found.items()):
        marks += _point(x, y, number, name, e.roofline)
    wanted = lines | {f"peak: {peak:.1f}": peak for peak, _ in peaks}
    places = apart({said: y.at(rate) for said, rate in wanted.items()}, _LINE)
    marks += [Label(x.stop + 8, at, said) for said, at in places.items()]
    first = next(iter(found.values()))
    m, n, k, *_ = first.shape
    return Drawing(
        f"{', '.join(found)}: roofline at {m} x {n} x {k}, {first.gpu.name}",
        " ".join(_sentence(name, e) for name, e in found.items()),
        _LEFT + _WIDTH + _RIGHT,
        max(y.start + 48, *(at + _LINE for at in places.values())),
        tuple(marks),
        "\n\n".join(_text(name, e) for name, e in found.items()),
    )


def _scales(rooflines: Sequence[Roofline], rates: Sequence[float]) -> tuple[Scale, Scale]:
    """Three doublings more than what lies between them, to both sides."""
    at = [x for r in rooflines for x in (r.intensity, r.ridge)]
    x = Scale(min(at) / 8, max(at) * 8, _LEFT, _LEFT + _WIDTH, logarithmic=True)
    bottom = _TOP + _HEIGHT
    return x, Scale(min(rates) / 8, max(rates) * 2, bottom, _TOP, logarithmic=True)


def _bounds(name: str, e: Explanation, count: int) -> Iterator[tuple[str, float]]:
    """What is written beside each line, and its TFLOP/s."""
    r = e.roofline
    if count > 1:
        yield f"{name}: {r.attainable / TERA:.1f}, {r.binding.name}", r.attainable / TERA
        return
    for bound in r.bounds:
        if bound.name != MEMORY:
            rate = r.flops / bound.seconds / TERA
            yield f"{bound.name}: {rate:.1f}", rate


def _roof(x: Scale, y: Scale, peak: float, ridge: float) -> Stroke:
    """Memory's slope from the left or lower edge to the ridge, then the peak."""
    begin = max(x.low, ridge * y.low / peak)
    points = ((begin, peak * begin / ridge), (ridge, peak), (x.high, peak))
    return Stroke(tuple((x.at(of), y.at(rate)) for of, rate in points), strong=True)


def _point(x: Scale, y: Scale, number: int, name: str, roofline: Roofline) -> Iterator[Mark]:
    rate = roofline.attainable / TERA
    left, top = x.at(roofline.intensity) - _POINT / 2, y.at(rate) - _POINT / 2
    about = f"{name}: {roofline.intensity:.1f} operations a byte, at most {rate:.1f} TFLOP/s"
    yield Cell(left, top, _POINT, _POINT, thread(number), "", about, strong=True)
    yield Label(left - 4, top + 1.6 * _POINT, f"{rate:.1f}", "end", "small")


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
