"""``--shape`` of ``emit``: ``assume`` lines for the divisors of the extents."""

from __future__ import annotations

import math
from dataclasses import replace

from gemmgen.base.errors import UsageError
from gemmgen.schedule.assume_lines import assume_key
from gemmgen.schedule.model import Assume, Schedule
from gemmgen.schedule.roles import extents

MOST = 1 << 16
"""The greatest divisor that a schedule may state."""


def assume_shape(schedule: Schedule, shape: tuple[int, ...]) -> Schedule:
    """``schedule`` for extents with the divisors of ``shape`` (M, N, K; numbers of matrices don't
    change a kernel).

    Raises ``UsageError`` if the schedule's own assumptions exclude the shape.
    """
    sizes = dict(zip(list(extents(schedule.gemm).values())[:3], shape, strict=False))
    for assume in schedule.assumes:
        _check(assume, sizes)
    kept = tuple(a for a in schedule.assumes if a.divisor is None or a.name not in sizes)
    aliases = {a.name for a in schedule.assumes if a.equals is not None}
    stated = tuple(
        Assume(name, divisor, None)
        for name, size in sizes.items()
        if (divisor := _divisor(size)) > 1 and name not in aliases
    )
    ordered = sorted((*kept, *stated), key=lambda a: assume_key(a, schedule.gemm))
    return replace(schedule, assumes=tuple(ordered))


def _divisor(size: int) -> int:
    """The size itself if a schedule may state it; else its greatest power of two."""
    return size if 0 < size <= MOST else math.gcd(size, MOST) if size else 1


def _check(assume: Assume, sizes: dict[str, int]) -> None:
    size = sizes.get(assume.name)
    if size is None:
        return
    if assume.divisor is not None and size % assume.divisor:
        why = f"{assume.name} % {assume.divisor} == 0, and {size} % {assume.divisor} = "
        raise UsageError(f"--shape: the schedule assumes {why}{size % assume.divisor}")
    if assume.equals is not None and size != sizes[assume.equals]:
        other = f"{assume.equals}, and {size} is not {sizes[assume.equals]}"
        raise UsageError(f"--shape: the schedule assumes {assume.name} == {other}")
