"""The calls that a trial of a random schedule makes: shapes, data, scalars, orders of threads."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.calling.launches import LAYOUTS, Case, Data, Order
from gemmgen.fuzz.dice import Dice
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import Emitted
from gemmgen.proof.calls import landings_of, orders_of
from gemmgen.proof.cases import SPAN, reaching, work
from gemmgen.proof.shapes import fit, ring_of, tile_of
from gemmgen.sim.poisoned_memory import can_span

MOST_WORK = 1 << 21
"""The most multiply-adds of one larger call."""
BATCH_WORK, MATRIX_WORK = 1 << 19, 1 << 23
"""The most multiply-adds of a call with several matrices, and with one."""
_FACTORS = (0.0, 1.0, -1.0, 0.7)
_DATA: tuple[Data, ...] = ("integers", "permutation", "integers", "normal")
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 23, 31, 37)


def cases(emitted: Emitted, dice: Dice) -> tuple[Case, ...]:
    """Four ragged shapes, each in two orders of threads; in one of them asynchronous copies
    complete late, in the other early, and if alpha is 0 the product is skipped.  And one larger
    call."""
    found: list[Case] = []
    landings = landings_of(emitted)
    for at, shape in enumerate(shapes(emitted, dice)):
        data = _DATA[(at + dice.below(4)) % 4]
        alpha, beta, pad = dice.pick(_FACTORS), dice.pick(_FACTORS), dice.pick((0, 1, 5))
        orders: tuple[Order, ...] = ("ascending", dice.pick(orders_of(emitted)[1:]))
        layout = dice.pick(LAYOUTS) if len(shape) > 3 else LAYOUTS[0]
        for order, landing in zip(orders, (landings[0], landings[-1]), strict=True):
            found.append(Case(shape, data, alpha, beta, pad, order, landing, layout))
        found[-1] = as_called(emitted, found[-1])
    return (*found, *_farther(emitted, dice))


def as_called(emitted: Emitted, case: Case) -> Case:
    """``case`` as callers of the kernel make it: if alpha is 0 the product is skipped."""
    skips_product = case.alpha == 0 and emitted.interface.product is not None
    return replace(case, skips_product=skips_product)


def _farther(emitted: Emitted, dice: Dice) -> tuple[Case, ...]:
    """One cheap call with many blocks, large K, infinities or far addresses."""
    spans = can_span(SPAN)
    cheap = [
        replace(case, watched=True)
        for case in reaching(emitted, landings_of(emitted))
        if work(emitted, case.shape) <= MOST_WORK and (spans or not case.far)
    ]
    return (dice.pick(cheap),) if cheap else ()


def shapes(emitted: Emitted, dice: Dice) -> tuple[Shape, ...]:
    """Less than a tile and a step; more tiles than stages; around the tile; primes or K = 0."""
    m, n, k, _ = tile_of(emitted.program)
    ring = ring_of(emitted.program)
    wanted = (
        (dice.pick((1, 2, 3)), dice.pick((1, 2, 3, 5)), max(1, dice.below(k))),
        (m + dice.pick((-1, 1)), n + dice.pick((-1, 1)), ring + dice.pick((-1, 1))),
        (dice.pick(_PRIMES), 2 * min(n, 48) + 1, dice.pick((k - 1, k, k + 1, 2 * k))),
        (2 * min(m, 48) + 3, dice.pick(_PRIMES), dice.pick((0, 0, 1, ring, ring + 2))),
    )
    batches = [[dice.pick((1, 2, 3)) for _ in emitted.interface.batches] for _ in wanted]
    return tuple(
        _of_less_work(emitted, (max(1, m), max(1, n), max(0, k), *batch))
        for (m, n, k), batch in zip(wanted, batches, strict=True)
    )


def _of_less_work(emitted: Emitted, shape: Shape) -> Shape:
    """The shape as the kernel takes it, with fewer matrices if all take too long, and smaller ones
    if one does, as for K = N."""
    fitted = fit(emitted, shape)
    batches = fitted[3:]
    if work(emitted, fitted) > BATCH_WORK and max(batches, default=1) > 1:
        most = max(batches) - 1
        return _of_less_work(emitted, (*shape[:3], *(min(count, most) for count in batches)))
    largest = max(shape[:3])
    if work(emitted, fitted) > MATRIX_WORK and largest > 1:
        return _of_less_work(
            emitted, (*(min(size, largest // 2) for size in shape[:3]), *shape[3:])
        )
    return fitted
