"""Memory accesses: the statements of a kernel that make them, and each thread's first element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from gemmgen.base.record import record
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Ints

Space = Literal["global", "shared"]


@record
class Site:
    """Accesses of one kind: to one buffer, in one direction, of one width, under one comment.

    ``note`` and ``origins`` are those of the emitted block of statements.
    """

    buffer: str
    space: Space
    write: bool
    width: int
    note: str
    origins: tuple[str, ...]
    size: int = 4
    """Bytes of an element."""
    fragment: bool = False
    """Whether tensor-core instructions make the accesses."""
    joined: int = 0
    """Of reads as they are compiled: the elements of each in the text, at another site; else 0."""
    boxes: bool = False
    """Whether TMA makes the accesses; then no warp issues a request."""


See = Callable[[Site, Index, Mask], None]
"""Called for each access with the first element of each active thread."""


@record
class Rows:
    """Rows of boxes that TMA moves; the elements of a row are adjacent. For each row: the block,
    the first element, and the number of elements, which may be 0."""

    blocks: Ints
    first: Ints
    length: Ints


SeeBoxes = Callable[[Site, Rows], None]
"""Called for the boxes of a statement."""


def first_elements(lanes: Lanes, index: Index, mask: Mask) -> Ints:
    """The first element that each thread accesses, -1 for none, as an array of (warps, 32)."""
    every = index if isinstance(index, np.ndarray) else np.full(lanes.count, index)
    active = every if mask is None else np.where(mask, every, -1)
    return active.reshape(-1, WARP)
