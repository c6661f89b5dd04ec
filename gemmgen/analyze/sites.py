"""Accesses of memory, told apart by where they stand in a kernel, and memories that show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from gemmgen.base.record import record
from gemmgen.interpreter.memory import FlatMemory, Index, Lanes, Mask
from gemmgen.ir.expr import Binary, Expr, Select, transform, walk

Space = Literal["global", "shared"]
ZERO = np.float32(0)
NOTHING = np.zeros(0, np.float32)


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


def both_sides(expr: Expr, is_data: Callable[[Expr], bool]) -> Expr:
    """``expr`` with its choices by data computing their condition and both sides.

    ``is_data`` says of a subexpression whether it is a value that only a run would know.
    """

    def rule(part: Expr) -> Expr | None:
        if not isinstance(part, Select) or not any(map(is_data, walk(part.condition))):
            return None
        condition, yes, no = (transform(e, rule) for e in (part.condition, part.yes, part.no))
        return Binary("+", Binary("+", condition, yes), no)

    return transform(expr, rule)


class Watched(FlatMemory):
    """A memory that holds nothing: what is read from it is 0, and seen (unless ``site`` is
    None)."""

    def __init__(self, name: str, lanes: Lanes, site: Site | None, see: See):
        super().__init__(name, NOTHING, lanes)
        self.site, self.see = site, see

    def load(self, index: Index, mask: Mask) -> np.float32:
        if self.site is not None:
            self.see(self.site, index, mask)
        return ZERO
