"""Measured times as a plot: the speed of each kernel over the sizes, and its share of cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gemmgen.base.record import record
from gemmgen.base.source import counted
from gemmgen.draw.marks import Axes, Drawing, Series

CUBLAS = "cuBLAS"
_WIDTH, _HEIGHT = 720.0, 560.0


@record
class Speed:
    """``tflops`` of a kernel at a size; ``share`` is that of cuBLAS, 1 for its own."""

    name: str
    size: str
    tflops: float
    share: float | None


At = Mapping[tuple[str, str], Speed]


def chart(speeds: Sequence[Speed], about: str) -> Drawing:
    """Speeds above, shares of cuBLAS below; ``about`` says where it was measured."""
    names = list(dict.fromkeys(s.name for s in speeds))
    sizes = list(dict.fromkeys(s.size for s in speeds))
    at = {(s.name, s.size): s for s in speeds}
    others = [name for name in names if name != CUBLAS]
    return Drawing(
        f"measured speed of {counted(len(others), 'kernel')} beside {CUBLAS}",
        " ".join((*_sentences(at, others, sizes), f"{about}.")),
        _WIDTH,
        _HEIGHT,
        (),
        _text(at, names, sizes),
        tuple(_axes(at, [*others, *(name for name in names if name == CUBLAS)], sizes)),
    )


def _axes(at: At, names: Sequence[str], sizes: Sequence[str]) -> Iterator[Axes]:
    """The two axes, with the same colors for a kernel in both; cuBLAS is the reference."""
    speeds = tuple(_series(name, at, sizes, "tflops") for name in names)
    yield Axes("M = N = K", "TFLOP/s", speeds, tuple(sizes))
    if any(speed.share is not None for speed in at.values()):
        shares = tuple(_series(name, at, sizes, "share") for name in names)
        yield Axes("M = N = K", "% of cuBLAS", shares, tuple(sizes))


def _series(name: str, at: At, sizes: Sequence[str], what: str) -> Series:
    found = ((x, at.get((name, size))) for x, size in enumerate(sizes))
    values = (
        (float(x), speed.tflops if what == "tflops" else speed.share)
        for x, speed in found
        if speed is not None
    )
    scale = 1.0 if what == "tflops" else 100.0
    points = tuple((x, scale * value) for x, value in values if value is not None)
    return Series(name, points, "reference" if name == CUBLAS else "line")


def _sentences(at: At, names: Sequence[str], sizes: Sequence[str]) -> Iterator[str]:
    """The fastest kernel at its last size, and the slowest."""
    last = [
        at[name, next(s for s in reversed(sizes) if (name, s) in at)]
        for name in names
        if any((name, s) in at for s in sizes)
    ]
    ends = (max(last, key=_tflops), min(last, key=_tflops)) if last else ()
    for speed in dict.fromkeys(ends):
        share = "" if speed.share is None else f", {speed.share:.1%} of cuBLAS"
        yield f"{speed.name} at {speed.size}: {speed.tflops:.1f} TFLOP/s{share}."


def _tflops(speed: Speed) -> float:
    return speed.tflops


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
