"""Accesses of memory, told apart by where they stand in a kernel, and memories that show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from gemmgen.base.record import record
from gemmgen.interpreter.simt import Index, Mask

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
    """Read or written by the instructions of tensor cores."""
    joined: int = 0
    """Of reads as they are compiled: the elements of each in the text, at another site; else 0."""


See = Callable[[Site, Index, Mask], None]
"""Called for each access: the first element of each thread that the mask lets take part."""
