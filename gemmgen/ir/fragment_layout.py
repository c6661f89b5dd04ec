"""What a lane holds of a matrix: the digits of its own number and of a register's, as data.

A lane's number is written with digits, the lowest first, and so is the number of an element among
those that the lane holds.  Each digit moves the element along one side of the matrix:

    lane ((4, "column", 2), (8, "row", 1)), register ((2, "column", 1), (2, "row", 8))

says that the element is in row ``lane / 4 + register / 2 * 8``, and in column
``lane % 4 * 2 + register % 2``.
"""

from __future__ import annotations

from math import prod
from typing import Literal

from gemmgen.base.record import record

Side = Literal["row", "column"]
Digit = tuple[int, Side, int]
"""How many values a digit has, the side that it moves along, and by how many elements each."""


@record
class FragmentLayout:
    """Which element of a matrix each lane of a warp has in each of its registers (CuTe: a
    thread-value layout).  A register here is one element, whatever it is packed with.

    Where several warps hold a matrix together, ``warp`` are the digits of a warp's number among
    them, and lanes are counted through all of them.
    """

    lane: tuple[Digit, ...]
    register: tuple[Digit, ...]
    warp: tuple[Digit, ...] = ()

    @property
    def lanes(self) -> int:
        """Of all the warps."""
        return prod(count for count, _, _ in (*self.lane, *self.warp))

    @property
    def registers(self) -> int:
        """Elements of a lane."""
        return prod(count for count, _, _ in self.register)

    def element(self, lane: int, register: int) -> tuple[int, int]:
        """The row and the column of a lane's element."""
        at = {"row": 0, "column": 0}
        for number, digits in ((lane, (*self.lane, *self.warp)), (register, self.register)):
            for count, side, step in digits:
                number, digit = divmod(number, count)
                at[side] += digit * step
        return at["row"], at["column"]

    def owner(self, row: int, column: int) -> tuple[int, int]:
        """The lane and the register that have an element: the inverse of ``element``."""
        at = {"row": row, "column": column}

        def number(digits: tuple[Digit, ...]) -> int:
            found, base = 0, 1
            for count, side, step in digits:
                found += at[side] // step % count * base
                base *= count
            return found

        return number((*self.lane, *self.warp)), number(self.register)

    def warps(self, side: Side) -> int:
        """Warps along a side, each with a part of the matrix of its own."""
        return prod(count for count, own, _ in self.warp if own == side)

    def along(self, side: Side) -> tuple[int, int, int]:
        """Of a side of a warp's part: the pieces that a lane has, the lanes that share each, and
        the neighbours that a lane has in it."""
        lanes = [(count, step) for count, own, step in self.lane if own == side]
        registers = [(count, step) for count, own, step in self.register if own == side]
        first = min(step for _, step in lanes)
        width = prod(count for count, step in registers if step < first)
        pieces = prod(count for count, step in registers if step >= first)
        return pieces, prod(count for count, _ in lanes), width
