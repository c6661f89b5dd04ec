"""Which kernel a shape gets: a few kernels for a range of shapes, and the table of a dispatcher.

A dispatcher launches the kernel of the nearest shape of its table.  The table is thinned: of a grid
of shapes it has those without which a shape of the grid would get a kernel that is slower than the
best one by more than ``CLOSE``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from math import exp, inf, log, log2, prod

from gemmgen.base.record import record
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.launch_shape import Shape
from gemmgen.library.kernel_times import KernelTimes, TimedKernel, distance, suggested
from gemmgen.library.library_spec import ProductSpec, ShapeRange

MOST_KERNELS = 12
"""Kernels for the ranges of a product, beside those of its shapes."""
CLOSE = 0.01
"""By how much a kernel may be estimated to be slower than the best one."""
ASKED, COVERED, LOOKED_AT = 4, 8, 24
"""Shapes in an octave of an extent: those that get a suggestion, those that the kernels are chosen
for, and those that the table is."""
MOST_ASKED, MOST_LOOKED_AT = 64, 400
"""Shapes of a grid in all."""
ALIGNED = 8
"""Extents of a grid other than the rows' are multiples of this, within their range."""


@record
class TableEntry:
    """A shape of a table, and the number of its kernel."""

    shape: Shape
    kernel: int


@record
class Table:
    """A product's kernels, and which shapes they are launched near; each kernel has an entry."""

    kernels: tuple[TimedKernel, ...]
    entries: tuple[TableEntry, ...]


def table_of(product: ProductSpec, gpu: Gpu, times: KernelTimes) -> Table:
    """The kernels for the shapes and ranges of a product."""
    found: dict[str, TimedKernel] = {}
    for shape in product.shapes:
        _add(found, suggested(product, gpu, shape))
    first = len(found)
    spans = _spans(product)
    others: dict[str, TimedKernel] = {}
    for span in product.ranges:
        for shape in grid_of(span, ASKED, MOST_ASKED):
            one = suggested(product, gpu, shape)
            _add(found if one.text in found else others, one)
    coarse = [shape for span in product.ranges for shape in grid_of(span, COVERED, MOST_LOOKED_AT)]
    chosen = covering([*found.values()], [*others.values()], coarse, times.seconds)
    found |= {one.text: one for one in chosen}
    kernels = tuple(found.values())
    known = list(enumerate(kernels[:first]))
    own = {shape: next(at for at, x in known if _knows(x, shape)) for shape in product.shapes}
    grid = [shape for span in spans for shape in grid_of(span, LOOKED_AT, MOST_LOOKED_AT)]
    return _used(kernels, thinned(own, grid, kernels, times.seconds))


def _add(found: dict[str, TimedKernel], one: TimedKernel) -> None:
    found[one.text] = _joined(found.get(one.text), one)


def _joined(one: TimedKernel | None, other: TimedKernel) -> TimedKernel:
    return other if one is None else TimedKernel(one.text, (*one.known, *other.known))


def _knows(kernel: TimedKernel, shape: Shape) -> bool:
    return any(time.shape == shape for time in kernel.known)


def _spans(product: ProductSpec) -> tuple[ShapeRange, ...]:
    """The ranges, and the least one that has all shapes."""
    if not product.shapes:
        return product.ranges
    low, high = (tuple(pick(x) for x in zip(*product.shapes, strict=True)) for pick in (min, max))
    return (*product.ranges, ShapeRange(low, high))


def grid_of(span: ShapeRange, per_octave: int, most: int) -> list[Shape]:
    """Shapes with extents that are spaced evenly by their logarithms, both ends included."""
    counts = [
        1 + (low < high) * max(1, round(per_octave * log2(high / low)))
        for low, high in zip(span.low, span.high, strict=True)
    ]
    while prod(counts) > most:
        counts[counts.index(max(counts))] -= 1
    axes = [
        _spaced(low, high, count, ALIGNED if at else 1)
        for at, (low, high, count) in enumerate(zip(span.low, span.high, counts, strict=True))
    ]
    return list(combinations(*axes))


def _spaced(low: int, high: int, count: int, multiple: int) -> list[int]:
    if count == 1:
        return [low]
    inner = (
        exp(log(low) + log(high / low) * at / (count - 1)) / multiple for at in range(1, count - 1)
    )
    between = (round(x) * multiple for x in inner)
    return list(dict.fromkeys((low, *(x for x in between if low < x < high), high)))


def covering(
    given: Sequence[TimedKernel],
    others: Sequence[TimedKernel],
    grid: Sequence[Shape],
    seconds: Callable[[TimedKernel, Shape], float],
) -> list[TimedKernel]:
    """Of ``others`` those to add to ``given``, at most ``MOST_KERNELS``: each is the one that makes
    the grid fastest, by the mean logarithm of times, until all of it is within ``CLOSE``."""
    best = {shape: min(seconds(one, shape) for one in (*given, *others)) for shape in grid}
    now = {shape: min((seconds(one, shape) for one in given), default=inf) for shape in grid}
    chosen: list[TimedKernel] = []
    left = list(others)
    while left and len(chosen) < MOST_KERNELS:
        if all(now[shape] <= best[shape] * (1 + CLOSE) for shape in grid):
            break

        def excess(one: TimedKernel, before: dict[Shape, float] = now) -> float:
            """The logarithms of times over the best ones, added up, with one kernel more."""
            times = ((min(before[shape], seconds(one, shape)), best[shape]) for shape in grid)
            return sum(log(min(time / least, FAR)) for time, least in times if least < inf)

        picked = min(left, key=excess)
        left.remove(picked)
        chosen.append(picked)
        now = {shape: min(now[shape], seconds(picked, shape)) for shape in grid}
    return chosen


FAR = 100.0
"""What a kernel that refuses a shape counts as, in multiples of the best time."""


def thinned(
    own: dict[Shape, int],
    grid: Sequence[Shape],
    kernels: Sequence[TimedKernel],
    seconds: Callable[[TimedKernel, Shape], float],
) -> list[TableEntry]:
    """``own`` (shapes whose kernel is given), and as many shapes of the grid as are needed."""
    entries = [TableEntry(shape, kernel) for shape, kernel in own.items()]
    times = {shape: [seconds(kernel, shape) for kernel in kernels] for shape in grid}
    others = {shape: each for shape, each in times.items() if min(each) < inf and shape not in own}
    while True:
        entries.sort(key=lambda entry: entry.shape)  # as the dispatcher has them
        worst, missing = CLOSE, None
        for shape, each in others.items():
            least = min(each)
            near = min(entries, key=lambda one: distance(one.shape, shape), default=None)
            loss = inf if near is None else each[near.kernel] / least - 1
            if loss > worst:
                worst, missing = loss, TableEntry(shape, each.index(least))
        if missing is None:
            return entries
        entries.append(missing)


def _used(kernels: Sequence[TimedKernel], entries: Sequence[TableEntry]) -> Table:
    """Without kernels that no shape has."""
    used = sorted({entry.kernel for entry in entries})
    numbers = {old: new for new, old in enumerate(used)}
    return Table(
        tuple(kernels[at] for at in used),
        tuple(TableEntry(entry.shape, numbers[entry.kernel]) for entry in entries),
    )
