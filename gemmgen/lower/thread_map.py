"""Which elements of a tile each thread of a block copies (CuTe: a thread-value layout).

Adjacent threads copy adjacent vectors of ``width`` elements along the letter that is
contiguous in global memory, row after row, so that a warp's accesses are coalesced.  Where fewer
threads are along a row than it has pieces, each takes several of them (``ir/copy_threads.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.buffers import Buffer, slice_height, slice_pieces
from gemmgen.ir.control import Define
from gemmgen.ir.copy_threads import is_narrow, threads_along
from gemmgen.ir.edit import copy_outward
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.lowered import Constant
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add, div, less, mod, mul, sub
from gemmgen.lower import addresses
from gemmgen.lower.context import TID, Context
from gemmgen.lower.vectors import store_width

VECTOR, ALONG = Var("vector"), Var("along")
NOTES = (
    "threads along a row of a tile",
    "a thread's copies in a row",
    "rows between a thread's copies",
    "a thread's copies of a tile",
)
"""What the constants of a copy are, in the order in which they follow from one another."""


@record
class ThreadMap:
    """The vectors of one copy: ``count`` per thread, the last of which may fall outside the tile.

    ``along`` threads share a row; each of the ``count`` is one vector of it, or ``turns`` of them.
    """

    tensor: str
    row: str
    column: str
    rows: int
    columns: int
    width: int
    threads: int
    along: int
    vector: Expr
    """``width`` by its name."""
    height: Expr
    """``rows`` by its name."""
    count_name: Var
    """``threads`` by its name."""

    @property
    def per_row(self) -> int:
        """Vectors in a row of the tile."""
        return self.columns // self.width

    @property
    def count(self) -> int:
        """Vectors per thread, or rows, each with ``turns`` vectors."""
        return -(-self.rows * self.along // self.threads)

    @property
    def turns(self) -> int:
        """Vectors per thread in one row."""
        return self.per_row // self.along

    @property
    def is_exact(self) -> bool:
        """Whether the threads' vectors fill the tile exactly."""
        return self.count * self.threads == self.rows * self.along

    @property
    def is_regular(self) -> bool:
        """Whether a thread's column stays the same from vector to vector."""
        return self.threads % self.along == 0

    @property
    def first_row(self) -> Var:
        return Var(f"{self.tensor}_{self.row}")

    @property
    def first_column(self) -> Var:
        return Var(f"{self.tensor}_{self.column}")

    @property
    def step(self) -> Var:
        """Rows between a thread's consecutive vectors, which are in one column:
        ``A_STEP``."""
        return Var(f"{self.tensor}_STEP")

    @property
    def vectors(self) -> Var:
        """``count`` by its name: ``A_VECTORS``."""
        return Var(f"{self.tensor}_VECTORS")

    @property
    def shared_row(self) -> Expr:
        """``along`` as the text computes it, or by its name if it was chosen."""
        if self.turns > 1:
            return Var(f"{self.tensor}_ALONG")
        return div(names.block(self.column), self.vector)

    @property
    def turns_of_row(self) -> Var:
        """``turns`` by its name: ``A_TURNS``."""
        return Var(f"{self.tensor}_TURNS")

    def constants(self) -> tuple[Constant, ...]:
        """The sizes that copies of this tile name."""
        along, across = self.shared_row, div(names.block(self.column), self.vector)
        turns = self.turns_of_row.name
        chosen = (
            Constant(f"{self.tensor}_ALONG", self.along, None, NOTES[0]),
            Constant(turns, self.turns, div(across, along), NOTES[1]),
        )
        step = Constant(
            self.step.name, self.threads // self.along, div(self.count_name, along), NOTES[2]
        )
        rows = self.height
        if not self.is_regular:
            whole = mul(rows, along)
            count = add(div(sub(whole, Int(1)), self.count_name), Int(1))
        elif self.is_exact:
            count = div(rows, self.step)
        else:
            count = add(div(sub(rows, Int(1)), self.step), Int(1))
        vectors = Constant(self.vectors.name, self.count, count, NOTES[3])
        return (*(chosen if self.turns > 1 else ()), step, vectors)

    def starts(self) -> tuple[Define, ...]:
        """A thread's first vector, if all others follow from it."""
        if not self.is_regular:
            return ()
        along = self.shared_row
        column = mul(mod(TID, along), self.vector)
        return (
            Define(self.first_row.name, div(TID, along)),
            Define(self.first_column.name, column),
        )

    def locals(self) -> tuple[Define, ...]:
        """The definitions in the loop over vectors from which coordinates are computed."""
        if self.is_regular:
            return ()
        index = add(TID, mul(VECTOR if self.count > 1 else Int(0), self.count_name))
        return (
            Define(f"{self.tensor}_vector", index),
            Define(self.first_row.name, div(Var(f"{self.tensor}_vector"), self.shared_row)),
            Define(
                self.first_column.name,
                mul(mod(Var(f"{self.tensor}_vector"), self.shared_row), self.vector),
            ),
        )

    def coordinates(self) -> dict[str, Expr]:
        """The coordinates of the current vector within the tile."""
        row: Expr = self.first_row
        if self.is_regular and self.count > 1:
            row = add(row, mul(VECTOR, self.step))
        return {self.row: row, self.column: add(self.first_column, self.further())}

    def further(self) -> Expr:
        """The current vector's offset along the row from the thread's first."""
        return mul(ALONG, mul(self.shared_row, self.vector)) if self.turns > 1 else Int(0)

    def inside(self) -> Expr | None:
        """The condition that the current vector is in the tile; None if all are."""
        if self.is_exact:
            return None
        return less(self.coordinates()[self.row], self.height)


def thread_maps(context: Context) -> tuple[ThreadMap, ...]:
    """How the threads share out each tile that they copy together."""
    return tuple(thread_map_of(context, copy) for copy in context.tile_copies)


def all_thread_maps(context: Context) -> tuple[ThreadMap, ...]:
    """Those, and that of the output on its way from shared to global memory, if threads store
    it."""
    outward = copy_outward(context.kernel)
    by_threads = outward is not None and outward.mode == "registers"
    last = (outward_map_of(context, outward),) if outward and by_threads else ()
    return (*thread_maps(context), *last)


def thread_map_of(context: Context, copy: Copy) -> ThreadMap:
    """How the threads share out the tile of a copy from global to shared memory."""
    src: Buffer = context.buffer(copy.src)
    row, column = src.letters[0], src.letters[-1]
    tile, threads = context.buffer(copy.dst), context.kernel.copying_threads
    rows, columns = tile.extent(row), tile.extent(column)
    along = threads_along(
        rows,
        columns // copy.width,
        threads,
        straight=tile.letters[-1] == column,
        narrow=copy.mode == "cp_async" and is_narrow(copy.width, tile.dtype),
    )
    vector = context.width(copy.dst)
    height = names.block(row)
    return ThreadMap(
        copy.src,
        row,
        column,
        rows,
        columns,
        copy.width,
        threads,
        along,
        vector,
        height,
        context.copying_threads,
    )


def outward_map_of(context: Context, outward: Copy) -> ThreadMap:
    """How the threads share out the slice of the output that they store to global memory."""
    tile, width = context.buffer(outward.src), store_width(context.kernel, outward)
    row, column = tile.letters
    rows, columns = tile.extent(row), tile.extent(column)
    return ThreadMap(
        tile.tensor,
        row,
        column,
        rows,
        columns,
        width,
        context.kernel.copying_threads,
        columns // width,
        context.width(outward.dst),
        slice_rows(context, row),
        context.copying_threads,
    )


def slice_rows(context: Context, letter: str) -> Expr:
    """The rows of a slice of the output, by name."""
    spread = context.kernel.spread
    if context.axis(letter).registers == slice_height(spread, letter):
        return names.block(letter)
    return names.slice_rows(context.output) if spread.by_warp else warp_rows(context, letter)


def slice_rows_constant(context: Context) -> Iterator[Constant]:
    """Its name, if warps have own rows of a slice."""
    outward = copy_outward(context.kernel)
    if outward is None or not context.kernel.spread.by_warp:
        return
    slice_ = context.buffer(outward.src)
    letter = slice_.letters[0]
    rows = mul(div(names.block(letter), names.warp(letter)), warp_rows(context, letter))
    note = f"rows of {context.output} in shared memory at a time"
    yield Constant(names.slice_rows(context.output).name, slice_.extent(letter), rows, note)


def rows_of_warp(context: Context, letter: str) -> int:
    """The rows of a slice that are a warp's, or where no warp owns a tile the block's."""
    return context.axis(letter).lanes * slice_height(context.kernel.spread, letter)


def warp_rows(context: Context, letter: str) -> Expr:
    """The same by name."""
    pieces, lanes = slice_pieces(context.kernel.spread, letter), names.lanes(letter)
    return mul(mul(Int(pieces), addresses.width(context, letter)), lanes) if pieces else lanes
