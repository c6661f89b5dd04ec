"""The calls that C2 makes of a kernel.

``cases`` combines the shapes of ``c2_shapes`` with numbers, paddings, orders and layouts.
``reaching`` adds a few calls that are larger or have far addresses.  A new kind of call is one more
generator in ``_REACHING``.  ``crossing`` adds those that the constants of the text need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import cycle, islice, product
from math import ceil, prod

from gemmgen.calling.launches import LAYOUTS, ORDERS, Case, Data, Landing, Order
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import Emitted
from gemmgen.proof import default_shapes
from gemmgen.proof.calls import landings_of, orders_of
from gemmgen.proof.literals import Crossing, constants, uncrossed
from gemmgen.proof.shapes import tile_of

FACTORS = (0.0, 1.0, -1.0, 0.7)
"""Values of alpha and of beta."""

_DATA: tuple[Data, ...] = ("integers", "normal", "permutation")
_PADS = (0, 1, 5)
_SMALL = 64
"""Elements of C up to which a shape is called with every alpha and beta."""
_FEW = 4
_MULTIPROCESSORS = 64
"""Of a GPU that runs at least as many blocks of a persistent kernel at once."""
_LARGE = 1 << 14
"""Elements of C beyond which only the first ``_WATCHED`` calls of a shape are watched."""
_WATCHED = 2
SPAN = 2**43
"""Bytes of address space that are enough for one far call; almost none of them are accessed."""
_LIGHT = 1 << 22
"""Multiply-adds up to which calls for wrong values only are watched nevertheless."""
_MOST_ACROSS = 1 << 28
"""Multiply-adds of the largest call that crosses a constant."""
_WORTH = 1 << 24
"""Multiply-adds of all unwatched calls below which a second program costs more than it saves."""


def cases_of(emitted: Emitted, landings: tuple[Landing, ...] = ()) -> tuple[Case, ...]:
    """All calls of a kernel without given shapes.

    ``landings`` are by default the kernel's own.
    """
    landings = landings or landings_of(emitted)
    shapes, orders = default_shapes.c2_shapes(emitted), orders_of(emitted)
    found = (*cases(shapes, landings, orders), *reaching(emitted, landings))
    found += tuple(replace(case, landing=landings[0]) for case in crossing(emitted, found))
    unwatched = sum(work(emitted, case.shape) for case in found if not case.watched)
    return found if unwatched > _WORTH else tuple(replace(case, watched=True) for case in found)


def crossing(emitted: Emitted, known: Iterable[Case]) -> tuple[Case, ...]:
    """Calls whose extents cross the constants of the text that no ``known`` call crosses, the
    largest first: they often cross smaller ones, too."""
    numbers, found = constants(emitted.text), list[Case]()
    shapes = [case.shape for case in known if not case.far]
    for missing in sorted(uncrossed(numbers, shapes), key=_by_size):
        if any(missing.is_done_by(case.shape[missing.letter]) for case in found):
            continue
        shape = default_shapes.across(emitted, missing)
        is_legal = missing.is_done_by(shape[missing.letter])  # by the kernel's assumptions
        if is_legal and work(emitted, shape) <= _MOST_ACROSS:
            found.append(Case(shape, "normal", 0.7, 0.7, 1, "ascending", watched=False))
    return tuple(found)


def not_crossed(emitted: Emitted, known: Iterable[Case]) -> tuple[int, ...]:
    """Constants of the text that no call crosses, since that takes too long."""
    missing = uncrossed(constants(emitted.text), [case.shape for case in known])
    legal = (x for x in missing if x.is_done_by(default_shapes.across(emitted, x)[x.letter]))
    return tuple(sorted({each.constant for each in legal}))


def _by_size(crossing: Crossing) -> tuple[int, int, bool]:
    return -crossing.constant, crossing.letter, crossing.exact


def work(emitted: Emitted, shape: Shape) -> int:
    """Multiply-adds of a call, those of partial tiles included."""
    *tile, _ = tile_of(emitted.program)
    whole = (ceil(size / step) * step for size, step in zip(shape[:3], tile, strict=True))
    return prod(whole) * prod(shape[3:])


def cases(
    shapes: tuple[Shape, ...],
    landings: tuple[Landing, ...] = ("late",),
    orders: tuple[Order, ...] = ORDERS,
) -> Iterator[Case]:
    """Small shapes with every alpha and beta, others with some; orders, paddings, data and, for
    batches, layouts alternate.

    Each kind of NaN and infinity occurs once per shape; asynchronous copies complete at each of
    ``landings``.
    """
    for case, landing in product(_cases(shapes, orders), landings):
        yield replace(case, landing=landing)


def _cases(shapes: tuple[Shape, ...], all_orders: tuple[Order, ...]) -> Iterator[Case]:
    pairs = cycle(product(FACTORS, FACTORS))
    orders, data, pads = cycle(all_orders), cycle(_DATA), cycle(_PADS)
    for at, shape in enumerate(shapes):
        m, n, _, *batches = shape
        size = m * n * prod(batches)
        layouts = cycle(LAYOUTS if batches else LAYOUTS[:1])
        count = len(FACTORS) ** 2 if size <= _SMALL else _FEW
        for number, (alpha, beta) in enumerate(islice(pairs, count)):
            order, layout = next(orders), next(layouts)
            watched = size <= _LARGE or number < _WATCHED
            case = Case(shape, next(data), alpha, beta, next(pads), order, layout=layout)
            yield replace(case, watched=watched)
            next(data if at % 2 else orders)  # else only a few combinations would occur
        for kind in ("NaN in A", "infinity in B"):
            order, layout = next(orders), next(layouts)
            case = Case(shape, kind, 1.0, 0.0, next(pads), order, layout=layout)
            yield replace(case, watched=size <= _LARGE)


def reaching(emitted: Emitted, landings: tuple[Landing, ...] = ("late",)) -> Iterator[Case]:
    """Calls beyond the default shapes: many blocks, large K, stale tiles, far addresses."""
    for generate in _REACHING:
        for case in generate(emitted):
            both = case.data in ("infinities in A", "infinities in B")
            yield from (replace(case, landing=landing) for landing in landings[: 2 if both else 1])


def _whole_tiles(emitted: Emitted) -> Iterator[Case]:
    yield Case(
        default_shapes.whole_tiles(emitted), "normal", 0.7, -1.0, 1, "descending", watched=False
    )


def _many_blocks(emitted: Emitted) -> Iterator[Case]:
    shape = default_shapes.many_blocks(emitted)
    case = Case(shape, "normal", -1.0, 0.7, 5, "ascending", watched=False)
    yield case
    if emitted.interface.resident:  # else a GPU of few multiprocessors would have few blocks
        yield replace(case, held=_MULTIPROCESSORS)


def _long_sums(emitted: Emitted) -> Iterator[Case]:
    yield Case(default_shapes.long_sums(emitted), "normal", 0.7, 0.7, 1, "shuffled", watched=False)


def _few_terms(emitted: Emitted) -> Iterator[Case]:
    for shape in default_shapes.few_terms(emitted):
        yield Case(shape, "normal", 1.0, 0.7, 1, "descending", watched=False)


def _stale_tiles(emitted: Emitted) -> Iterator[Case]:
    """Detects a stale element of an earlier tile where a 0 belongs: it is multiplied by a zero of
    the other operand, so that only an infinity exposes it."""
    shape = default_shapes.stale_tiles(emitted)
    watched = work(emitted, shape) <= _LIGHT
    yield Case(shape, "infinities in A", 1.0, 0.0, 1, "ascending", watched=watched)
    yield Case(shape, "infinities in B", 1.0, 0.0, 0, "descending", watched=watched)


def _far_addresses(emitted: Emitted) -> Iterator[Case]:
    """Offsets that don't fit an int."""
    for shape in default_shapes.far_shapes(emitted):
        yield Case(shape, "normal", 0.7, -1.0, far=True)
        if emitted.interface.arithmetic.products > 1:  # what is not finite is computed again
            yield Case(shape, "NaN in A", 1.0, 0.0, far=True)


_REACHING: tuple[Callable[[Emitted], Iterator[Case]], ...] = (
    _stale_tiles,
    _far_addresses,
    _whole_tiles,
    _many_blocks,
    _long_sums,
    _few_terms,
)
