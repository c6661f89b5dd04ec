"""Strided tensors: shapes and strides in elements, any of them 0 or negative."""

from __future__ import annotations

from collections.abc import Sequence


def is_folded(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two different indices of a tensor address one element.

    They do if differences of indices, not all 0, add up to offset 0.  The search begins with the
    longest stride, for which few differences can be balanced by the others.
    """
    steps = [(abs(s), n - 1) for s, n in zip(strides, shape, strict=True) if n > 1]
    steps.sort(reverse=True)
    reach = [sum(s * most for s, most in steps[at + 1 :]) for at in range(len(steps))]

    def closes(at: int, total: int, moved: bool) -> bool:
        if at == len(steps):
            return moved and total == 0
        (stride, most), rest = steps[at], reach[at]
        if stride == 0:
            return True
        first = max(-most if moved else 0, -((total + rest) // stride))
        last = min(most, (rest - total) // stride)
        return any(
            closes(at + 1, total + d * stride, moved or d != 0) for d in range(first, last + 1)
        )

    return 0 not in shape and closes(0, 0, False)


def bounds(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The offsets of a tensor's lowest element and past its highest, relative to its first index;
    (0, 0) if it has no element."""
    if 0 in shape:
        return 0, 0
    moves = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(min(move, 0) for move in moves), sum(max(move, 0) for move in moves) + 1


MOST_TRIES = 100_000
"""Differences of indices that are tried before two tensors are assumed to overlap."""


def may_meet(
    one: tuple[Sequence[int], Sequence[int]],
    other: tuple[Sequence[int], Sequence[int]],
    distance: int,
) -> bool:
    """Whether an element of ``one`` (shape, strides) is an element of ``other``, whose first index
    is ``distance`` elements after that of ``one``.  Also true if the search takes long.
    """
    if 0 in one[0] or 0 in other[0]:
        return False
    ranges: dict[int, tuple[int, int]] = {}
    for sign, (shape, strides) in ((1, one), (-1, other)):
        for size, stride in zip(shape, strides, strict=True):
            low, high = ranges.get(abs(stride), (0, 0))
            way = sign if stride >= 0 else -sign
            moved = (0, size - 1) if way > 0 else (1 - size, 0)
            ranges[abs(stride)] = low + moved[0], high + moved[1]
    steps = [(s, *ranges[s]) for s in sorted(ranges, reverse=True) if s]
    reach = [_reach(steps[at + 1 :]) for at in range(len(steps))]
    tries = 0

    def closes(at: int, left: int) -> bool:
        nonlocal tries
        if at == len(steps):
            return left == 0
        (stride, low, high), (least, most) = steps[at], reach[at]
        first, last = max(low, -((most - left) // stride)), min(high, (left - least) // stride)
        for d in range(first, last + 1):
            tries += 1
            if tries > MOST_TRIES or closes(at + 1, left - d * stride):
                return True
        return False

    return closes(0, distance)


def _reach(steps: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    return sum(s * low for s, low, _ in steps), sum(s * high for s, _, high in steps)
