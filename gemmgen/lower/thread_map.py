"""Which elements of a tile each thread of a block copies (CuTe: a thread-value layout).

Neighbouring threads take neighbouring pieces of ``width`` elements along the letter that is
contiguous in global memory, row after row, so that a warp's accesses are coalesced.  Where fewer
threads are along a row than it has pieces, each takes several of them (``ir/copy_threads.py``).
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.control import Define
from gemmgen.ir.copy_threads import is_narrow, threads_along
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.nodes import Buffer, Copy
from gemmgen.ir.simplify import add, div, less, mod, mul
from gemmgen.lower.context import THREADS, TID, Context

PIECE, ALONG = Var("piece"), Var("along")


@record
class ThreadMap:
    """The pieces of one copy: ``count`` per thread, the last of which may fall outside the tile.

    ``along`` threads share a row; each of the ``count`` is one piece of it, or ``turns`` of them.
    """

    tensor: str
    row: str
    column: str
    rows: int
    columns: int
    width: int
    threads: int
    along: int

    @property
    def per_row(self) -> int:
        """Pieces in a row of the tile."""
        return self.columns // self.width

    @property
    def count(self) -> int:
        """Pieces of a thread, or rows of which it has ``turns``."""
        return -(-self.rows * self.along // self.threads)

    @property
    def turns(self) -> int:
        """Pieces of a thread in one row."""
        return self.per_row // self.along

    @property
    def is_exact(self) -> bool:
        """Whether the threads' pieces fill the tile with none left over."""
        return self.count * self.threads == self.rows * self.along

    @property
    def is_regular(self) -> bool:
        """Whether a thread's column stays the same from piece to piece."""
        return self.threads % self.along == 0

    @property
    def first_row(self) -> Var:
        return Var(f"{self.tensor}_{self.row}")

    @property
    def first_column(self) -> Var:
        return Var(f"{self.tensor}_{self.column}")

    def starts(self) -> tuple[Define, ...]:
        """A thread's first piece, where all its pieces follow from it."""
        if not self.is_regular:
            return ()
        along = self._along()
        column = mul(mod(TID, along), Int(self.width))
        return (
            Define(self.first_row.name, div(TID, along)),
            Define(self.first_column.name, column),
        )

    def locals(self) -> tuple[Define, ...]:
        """What a piece's coordinates are computed from, inside the loop over pieces."""
        if self.is_regular:
            return ()
        index = add(TID, mul(PIECE if self.count > 1 else Int(0), THREADS))
        return (
            Define(f"{self.tensor}_piece", index),
            Define(self.first_row.name, div(Var(f"{self.tensor}_piece"), self._along())),
            Define(
                self.first_column.name,
                mul(mod(Var(f"{self.tensor}_piece"), self._along()), Int(self.width)),
            ),
        )

    def coordinates(self) -> dict[str, Expr]:
        """The coordinates of the present piece within the tile."""
        row: Expr = self.first_row
        if self.is_regular and self.count > 1:
            row = add(row, mul(PIECE, div(THREADS, self._along())))
        return {self.row: row, self.column: add(self.first_column, self.further())}

    def further(self) -> Expr:
        """How far along the row the present piece is after the thread's first."""
        return mul(ALONG, Int(self.along * self.width)) if self.turns > 1 else Int(0)

    def inside(self) -> Expr | None:
        """The condition under which the present piece lies in the tile; None where all do."""
        if self.is_exact:
            return None
        return less(self.coordinates()[self.row], names.block(self.row))

    def _along(self) -> Expr:
        if self.turns > 1:
            return Int(self.along)
        return div(names.block(self.column), Int(self.width))


def thread_map_of(context: Context, copy: Copy) -> ThreadMap:
    """How the threads share out the tile of a copy from global to shared memory."""
    src: Buffer = context.buffer(copy.src)
    row, column = src.letters[0], src.letters[-1]
    tile, threads = context.buffer(copy.dst), context.kernel.spread.threads
    rows, columns = tile.extent(row), tile.extent(column)
    along = threads_along(
        rows,
        columns // copy.width,
        threads,
        straight=tile.letters[-1] == column,
        narrow=copy.mode == "cp_async" and is_narrow(copy.width, tile.dtype),
    )
    return ThreadMap(copy.src, row, column, rows, columns, copy.width, threads, along)
