"""Measured times as a chart: the speed of each kernel over the sizes, and its share of cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gemmgen.base.record import record
from gemmgen.base.source import counted
from gemmgen.draw.marks import PLAIN, Cell, Drawing, Label, Mark, Stroke, thread
from gemmgen.draw.scales import Scale, apart, upwards

CUBLAS = "cuBLAS"
_LEFT, _TOP, _HEIGHT, _RIGHT, _BETWEEN = 56.0, 40.0, 300.0, 240.0, 88.0
_SIZE, _BAR, _LINE = 120.0, 12.0, 15.0
"""Pixels of a size in the upper chart, of a bar in the lower one, and of a line of text."""


@record
class Speed:
    """``tflops`` of a kernel at a size; ``share`` is that of cuBLAS, 1 for its own."""

    name: str
    size: str
    tflops: float
    share: float | None


def chart(speeds: Sequence[Speed], about: str) -> Drawing:
    """Lines above and bars below; ``about`` says where it was measured."""
    names = list(dict.fromkeys(s.name for s in speeds))
    sizes = list(dict.fromkeys(s.size for s in speeds))
    at = {(s.name, s.size): s for s in speeds}
    others = [name for name in names if name != CUBLAS]
    each = _BAR * len(others) + 2 * _BAR
    width = _LEFT + max(_SIZE * (len(sizes) - 1) + _RIGHT, each * len(sizes)) + 24
    lines, bottom = _lines(at, names, sizes)
    marks = [*lines, *_bars(at, others, sizes, bottom + _BETWEEN, each)]
    height = bottom + _BETWEEN + _HEIGHT + 40
    return Drawing(
        f"measured speed of {counted(len(others), 'kernel')} beside {CUBLAS}",
        " ".join((*_sentences(at, others, sizes), f"{about}.")),
        width,
        height,
        tuple(marks),
        _text(at, names, sizes),
    )


At = Mapping[tuple[str, str], Speed]


def _lines(at: At, names: Sequence[str], sizes: Sequence[str]) -> tuple[list[Mark], float]:
    """TFLOP/s over the sizes, with the names of kernels at the right; where they end below."""
    bottom = _TOP + _HEIGHT
    y = Scale(0.0, max(s.tflops for s in at.values()) * 1.05, bottom, _TOP)
    xs = {size: _LEFT + _SIZE / 2 + _SIZE * number for number, size in enumerate(sizes)}
    end = max(xs.values()) + _SIZE / 4
    marks: list[Mark] = [*upwards(y, _LEFT, "TFLOP/s"), Stroke(((_LEFT, bottom), (end, bottom)))]
    marks += [Label(x, bottom + _LINE, size, "middle", "small") for size, x in xs.items()]
    wanted: dict[str, float] = {}
    for number, name in enumerate(names):
        points = [(x, y.at(at[name, size].tflops)) for size, x in xs.items() if (name, size) in at]
        meaning, strong = (PLAIN, True) if name == CUBLAS else (thread(number), False)
        if len(points) > 1:
            marks.append(Stroke(tuple(points), meaning, strong=strong))
        for (px, py), size in zip(points, (s for s in xs if (name, s) in at), strict=True):
            about = f"{name} at {size}: {at[name, size].tflops:.1f} TFLOP/s"
            marks.append(Cell(px - 4, py - 4, 8, 8, meaning, "", about, strong=strong))
        last = next(s for s in reversed(sizes) if (name, s) in at)
        wanted[f"{name}: {at[name, last].tflops:.1f}"] = points[-1][1]
    places = apart(wanted, _LINE)
    for said, where in places.items():
        name = said.rpartition(":")[0]
        meaning = PLAIN if name == CUBLAS else thread(names.index(name))
        marks.append(Cell(end + 8, where - 4, 8, 8, meaning, strong=name == CUBLAS))
        marks.append(Label(end + 24, where, said, size="small"))
    return marks, max(bottom, *places.values()) + 2 * _LINE


def _bars(
    at: At, names: Sequence[str], sizes: Sequence[str], top: float, each: float
) -> Iterator[Mark]:
    """Shares of cuBLAS, side by side for each size."""
    shares = [s.share for s in at.values() if s.share is not None]
    if not shares:
        return
    bottom = top + _HEIGHT
    y = Scale(0.0, 100 * max(1.0, *shares) * 1.05, bottom, top)
    yield from upwards(y, _LEFT, "% of cuBLAS")
    end = _LEFT + each * len(sizes)
    yield Stroke(((_LEFT, y.at(100)), (end, y.at(100))), dashed=True)
    for place, size in enumerate(sizes):
        left = _LEFT + _BAR + place * each
        yield Label(left + each / 2 - _BAR, bottom + _LINE, size, "middle", "small")
        for number, name in enumerate(names):
            speed = at.get((name, size))
            if speed is not None and speed.share is not None:
                high = y.at(100 * speed.share)
                about = f"{name} at {size}: {speed.share:.1%} of cuBLAS"
                box = (left + number * _BAR, high, _BAR, bottom - high)
                yield Cell(*box, thread(number + _first(at)), "", about)
    yield Stroke(((_LEFT, bottom), (end, bottom)))


def _first(at: At) -> int:
    """A kernel has one color in both charts: 1 if cuBLAS is numbered before all of them."""
    return int(next(iter(at))[0] == CUBLAS)


def _sentences(at: At, names: Sequence[str], sizes: Sequence[str]) -> Iterator[str]:
    for name in names:
        last = next(s for s in reversed(sizes) if (name, s) in at)
        speed = at[name, last]
        share = "" if speed.share is None else f", {speed.share:.1%} of cuBLAS"
        yield f"{name} at {last}: {speed.tflops:.1f} TFLOP/s{share}."


def _text(at: At, names: Sequence[str], sizes: Sequence[str]) -> str:
    """TFLOP/s as bars, size by size."""
    wide, most = max(map(len, names)), max(s.tflops for s in at.values())
    lines: list[str] = []
    for size in sizes:
        lines.append(size)
        for name in names:
            speed = at.get((name, size))
            if speed is not None:
                bar = "#" * max(1, round(50 * speed.tflops / most))
                lines.append(f"  {name:<{wide}} {speed.tflops:>8.1f}  {bar}")
    return "\n".join(lines)
