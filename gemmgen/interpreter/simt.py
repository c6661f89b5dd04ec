"""The threads that run side by side, and which of them take part.

Each thread is a *lane* of NumPy's arrays.  A mask says which lanes take part in a step; None: all.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.numerics.operators import Bools, Ints, Value

Mask = Bools | None
Index = int | Ints
"""An element's number; an int if it is the same in all lanes."""


class Trap(Exception):
    """A thread did what it may not: an access out of bounds, misaligned or in conflict."""

    def __init__(self, buffer: str, thread: str, index: int, description: str):
        super().__init__(f"{buffer}[{index}]: {description}, by {thread}")
        self.buffer = buffer
        self.thread = thread
        self.index = index
        self.description = description


@record
class Lanes:
    """The threads of ``blocks`` blocks, the first of which has the number ``first``.

    ``x`` and ``y`` are a block's threads along threadIdx.x and threadIdx.y.  Of each block only
    ``part`` is there, if it is given: a first thread, and how many.  The blocks are whole clusters,
    of ``cluster`` blocks each.
    """

    first: int
    blocks: int
    x: int
    y: int
    part: tuple[int, int] | None = None
    cluster: int = 1

    @property
    def begin(self) -> int:
        """The first of a block's threads that is there."""
        return self.part[0] if self.part else 0

    @property
    def threads(self) -> int:
        """How many of a block's threads are there."""
        return self.part[1] if self.part else self.of_block

    @property
    def of_block(self) -> int:
        """All threads of a block."""
        return self.x * self.y

    @property
    def count(self) -> int:
        return self.blocks * self.threads

    def peer(self, lane: int, rank: int) -> int:
        """Of the blocks that are there the number of the one of this ``rank`` in a lane's
        cluster."""
        own = lane // self.threads
        return own - own % self.cluster + rank

    def name(self, lane: int) -> str:
        block, thread = divmod(lane, self.threads)
        thread += self.begin
        return f"block {self.first + block}, thread ({thread % self.x}, {thread // self.x})"

    def builtins(self) -> dict[str, Index]:
        """``threadIdx`` and ``blockIdx``; an int if it is the same in all lanes."""
        thread = np.tile(self.begin + np.arange(self.threads), self.blocks)
        block = np.repeat(np.arange(self.first, self.first + self.blocks), self.threads)
        return {
            "threadIdx.x": thread % self.x if self.x > 1 else 0,
            "threadIdx.y": thread // self.x if self.y > 1 else 0,
            "blockIdx.x": block if self.blocks > 1 else self.first,
        }

    def numbers(self) -> Ints:
        """Each lane's number among all threads of the launch."""
        own = self.begin + np.arange(self.threads)
        blocks = np.arange(self.first, self.first + self.blocks) * self.of_block
        return (blocks[:, None] + own).reshape(-1)

    def of_blocks(self, mask: Mask) -> Ints:
        """How many lanes of each block take part."""
        if mask is None:
            return np.full(self.blocks, self.threads)
        return mask.reshape(self.blocks, self.threads).sum(axis=1)

    def every(self, value: Value) -> Ints:
        """``value`` of each lane."""
        return np.broadcast_to(np.asarray(value), self.count)


def narrowed(mask: Mask, condition: Bools) -> Mask:
    """The lanes of ``mask`` in which ``condition`` holds; None if that is every lane."""
    both = condition if mask is None else condition & mask
    return None if both.all() else both


def is_empty(mask: Mask) -> bool:
    return mask is not None and not mask.any()


def where(condition: Value, mask: Mask) -> tuple[bool, Mask]:
    """The lanes of ``mask`` in which ``condition`` holds, and whether there are any."""
    if not isinstance(condition, np.ndarray):
        return bool(condition), mask
    both = narrowed(mask, cast(Bools, condition))
    return not is_empty(both), both


def left_out(mask: Mask, together: int) -> int | None:
    """The first lane that does not take part though one of its group does, of ``together``
    neighbours; None if there is none."""
    if mask is None:
        return None
    arrived = mask.reshape(-1, together)
    apart = arrived.any(axis=1) & ~arrived.all(axis=1)
    if not apart.any():
        return None
    group = int(np.argmax(apart))
    return int(np.argmin(arrived[group])) + group * together
