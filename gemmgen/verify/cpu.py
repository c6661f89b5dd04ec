"""C2: the emitted text itself, run on this machine, against the very bits it should give.

Each of its accesses is looked at while it runs: races, bounds, alignment, what was never written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice, product
from math import prod

from gemmgen.errors import CannotCheck
from gemmgen.ir.landing import Landing
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel
from gemmgen.verify.calls import Caller, Case, Data, Order, landings_of
from gemmgen.verify.layouts import LAYOUTS
from gemmgen.verify.outcome import Outcome, Shape, Subject, counted, failed, passed, skipped
from gemmgen.verify.shapes import default_shapes

LAYER = "C2"
FACTORS = (0.0, 1.0, -1.0, 0.7)
"""Values of alpha and of beta."""

_ORDERS: tuple[Order, ...] = ("ascending", "descending", "shuffled")
_DATA: tuple[Data, ...] = ("integers", "normal", "permutation")
_PADS = (0, 1, 5)
MOST = 1 << 26
"""Multiply-adds beyond which a shape is left to a GPU."""
_SMALL = 64
"""Elements of C up to which a shape meets every alpha and beta."""
_FEW = 4


def check(subject: Subject) -> Outcome:
    """Runs the kernel at ragged shapes; the first wrong answer ends the check."""
    shapes = _small(subject) or default_shapes(subject.emitted)
    caller, count = Caller(subject.emitted), 0
    try:
        kernel = CompiledKernel(subject.emitted.text, subject.emitted.interface, checked=True)
    except CannotCheck as missing:
        return skipped(LAYER, str(missing))
    except KernelFailure as failure:
        return failed(LAYER, f"g++ does not take the text: {failure}")
    try:
        for case in cases(shapes, landings_of(subject.emitted)):
            try:
                complaint = caller.complaint(case, kernel)
            except KernelFailure as failure:
                complaint = str(failure)
            if complaint is not None:
                return failed(LAYER, f"{case.text()}: {complaint}")
            count += 1
    finally:
        kernel.close()
    at = counted(len(shapes), "shape")
    watched = "every access watched"
    return passed(LAYER, f"{counted(count, 'run')} of the text at {at}, {watched}{_left(subject)}")


def _small(subject: Subject) -> tuple[Shape, ...]:
    """The shapes asked for that a CPU can do."""
    return tuple(s for s in subject.shapes if prod(s) <= MOST)


def _left(subject: Subject) -> str:
    count = len(subject.shapes) - len(_small(subject))
    return f"; of those asked for, {count} is left to a GPU" if count else ""


def cases(shapes: tuple[Shape, ...], landings: tuple[Landing, ...] = ("late",)) -> Iterator[Case]:
    """Small shapes with every alpha and beta, others with some; orders, paddings, data and, of
    batches, layouts in turn.

    Each kind of NaN and infinity is placed once per shape; asynchronous copies land in each of
    ``landings``.
    """
    for case, landing in product(_cases(shapes), landings):
        yield replace(case, landing=landing)


def _cases(shapes: tuple[Shape, ...]) -> Iterator[Case]:
    pairs = cycle(product(FACTORS, FACTORS))
    orders, data, pads = cycle(_ORDERS), cycle(_DATA), cycle(_PADS)
    for at, shape in enumerate(shapes):
        m, n, _, *batches = shape
        layouts = cycle(LAYOUTS if batches else LAYOUTS[:1])
        count = len(FACTORS) ** 2 if m * n * prod(batches) <= _SMALL else _FEW
        for alpha, beta in islice(pairs, count):
            order, layout = next(orders), next(layouts)
            yield Case(shape, next(data), alpha, beta, next(pads), order, layout=layout)
            next(data if at % 2 else orders)  # else the same few meet again and again
        for kind in ("NaN in A", "infinity in B"):
            order, layout = next(orders), next(layouts)
            yield Case(shape, kind, 1.0, 0.0, next(pads), order, layout=layout)
