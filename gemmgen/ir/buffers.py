"""Buffers: where data is in global memory, shared memory and registers, and who owns it."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from math import prod

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Atom, Holding
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.fragment_layout import FragmentLayout, Side
from gemmgen.ir.kept_order import keeps_order

Origins = tuple[str, ...]
"""The canonical directives that shaped a node, in their order."""


class Space(Enum):
    GLOBAL = "global"
    SHARED = "shared"
    REGISTER = "register"


class Role(Enum):
    """What a buffer is for; each role belongs to one space."""

    TENSOR = "tensor", Space.GLOBAL
    """The block's matrix of a tensor."""
    TEMPORARY = "temporary", Space.GLOBAL
    """A matrix between two kernels."""
    PLANES = "planes", Space.GLOBAL
    """The terms of a split operand."""
    TILE = "tile", Space.SHARED
    """An operand's tile of a step."""
    STAGING = "staging", Space.SHARED
    """The slice that accumulators, or the output, pass through."""
    FRAGMENT = "fragment", Space.REGISTER
    """An operand's elements that a thread, or a warp, holds."""
    ACCUMULATOR = "accumulator", Space.REGISTER
    """The accumulators of the block's tile."""
    PARTIAL = "partial", Space.REGISTER
    """The accumulators of an instruction, which are promoted into the others."""

    space: Space

    def __new__(cls, word: str, space: Space) -> Role:
        member = object.__new__(cls)
        member._value_, member.space = word, space
        return member


@record
class AxisSpread:
    """How one letter of a tile is distributed over threads.

    The element at ``((warp * pieces + piece) * lanes + lane) * width + e`` belongs to thread
    (warp, lane), which keeps it in register ``piece * width + e``.  Without ``warp_tile`` there is
    one "warp", the whole block, and ``lanes`` counts the threads along the letter.

    With ``rounds`` the warps go over the tile as often, and have a share of their pieces each time:
    the first ones of all warps come before the second ones of any.
    """

    SYNTAX = "{letter}={warps}x{pieces}x{lanes}x{width}"

    letter: str
    warps: int
    pieces: int
    lanes: int
    width: int
    rounds: int = keeps_order(1)

    @property
    def extent(self) -> int:
        return self.warps * self.pieces * self.lanes * self.width

    @property
    def threads(self) -> int:
        return self.warps * self.lanes

    @property
    def registers(self) -> int:
        """Elements per thread along the letter."""
        return self.pieces * self.width


def axes_of_operand(
    accumulators: AxisSpread, layout: FragmentLayout, side: Side, contracted: str
) -> tuple[AxisSpread, AxisSpread]:
    """An operand's fragments as its atom states them: along the axis of the accumulators, which is
    the ``side`` of the operand, and along the contracted letter."""
    _, lanes, width = layout.along(side)
    pieces = accumulators.extent // accumulators.warps // (lanes * width)
    along = AxisSpread(accumulators.letter, accumulators.warps, pieces, lanes, width)
    other: Side = "row" if side == "column" else "column"
    return along, AxisSpread(contracted, 1, *layout.along(other))


@record
class Spread:
    """Which thread owns which element of a register tile; ``x`` is the letter that varies
    fastest.

    ``atom`` is the instruction for whose pieces it is made.  If several lanes hold a piece of that
    atom together and no thread knows how, a "thread" above is all of them: with ``wmma`` the lanes
    of a warp own a piece of ``width`` x ``width``.

    With ``by_warp`` a warp owns a sub-tile, and a thread's coordinates are those within its warp,
    even if one warp owns the whole tile.  An atom whose lanes hold it opaquely says so already.

    With ``k_layout``, the axis of the contracted letter, a "thread" above is ``lanes`` neighbouring
    ones: each sums its own k elements.
    """

    SYNTAX = "{axes}"

    axes: tuple[AxisSpread, ...]
    x: str
    atom: Atom = "fma"
    k_layout: AxisSpread | None = None
    by_warp: bool = keeps_order(False)

    def axis(self, letter: str) -> AxisSpread:
        return next(a for a in self.axes if a.letter == letter)

    @property
    def holding(self) -> Holding:
        """What holds the elements: a thread, or lanes of a warp together."""
        return "lanes" if self.k_layout else ATOMS[self.atom].holding

    @property
    def lanes_per_sum(self) -> int:
        """Lanes that have partial sums of the same element."""
        return self.k_layout.lanes if self.k_layout else 1

    @property
    def lanes_per_piece(self) -> int:
        """Lanes that hold a piece of the atom together, which of them has what unspecified."""
        return ATOMS[self.atom].together

    @property
    def collective(self) -> bool:
        """Whether a warp loads and multiplies pieces by its own instructions."""
        return ATOMS[self.atom].lanes > 1

    @property
    def has_coordinates(self) -> bool:
        """Whether each element belongs to one thread, which knows where it is."""
        return self.holding in ("thread", "known", "warpgroup")

    @property
    def warps_x(self) -> str:
        """The letter along which warps go first: ``x``, or the rows' where several warps have rows
        of a piece, one below another."""
        accumulators = ATOMS[self.atom].accumulators
        return self.axes[0].letter if accumulators and accumulators.warp else self.x

    @property
    def threads(self) -> int:
        shared = self.lanes_per_piece * self.lanes_per_sum
        return prod(a.threads for a in self.axes) * shared

    @property
    def warps(self) -> int:
        return prod(a.warps for a in self.axes)

    @property
    def registers(self) -> int:
        """Elements per thread."""
        return prod(a.registers for a in self.axes) // self.lanes_per_piece

    def with_axes(self, *axes: AxisSpread) -> Spread:
        """The same spread with axes of these letters replaced."""
        new = {a.letter: a for a in axes}
        return replace(self, axes=tuple(new.get(a.letter, a) for a in self.axes))


def slice_pieces(spread: Spread, outer: str) -> int:
    """The pieces of a thread's micro-tile along ``outer`` that a slice has whole, where an atom
    gives a thread neighbours along that letter; else 0, and a slice has one row of them."""
    axis, traits = spread.axis(outer), ATOMS[spread.atom]
    if axis.width == 1 or traits.accumulators is None:
        return 0
    return 2 if axis.pieces % 2 == 0 else 1


def slice_height(spread: Spread, outer: str) -> int:
    """The rows of a thread's micro-tile that a slice of the output has."""
    return slice_pieces(spread, outer) * spread.axis(outer).width or 1


def slice_of(spread: Spread, outer: str, inner: str) -> tuple[tuple[str, int], ...]:
    """The shape of a slice of the output, of all threads together: whole rows along ``inner``, and
    along ``outer`` those of ``slice_height`` for each thread."""
    rows = spread.axis(outer).threads * slice_height(spread, outer)
    return (outer, rows), (inner, spread.axis(inner).extent)


@record
class Swizzle:
    """Chunks of ``chunk`` elements are permuted within a row: chunk c of row r is at the position
    of chunk ``c ^ (r / every % by)``.  ``by`` and ``chunk`` are powers of two."""

    SYNTAX = ""

    by: int
    every: int
    chunk: int

    @property
    def period(self) -> int:
        """Elements of a row that are permuted among themselves."""
        return self.by * self.chunk

    def column(self, row: int, column: int) -> int:
        """The position of the element in ``column`` of ``row``; its own inverse."""
        return column ^ (row // self.every % self.by * self.chunk)


@record
class Buffer:
    """A tensor in global memory, or a tile of one in shared memory or registers: its ``role``.

    ``of`` names the tensor whose elements a tile, a fragment, planes or a staged slice has (of
    staged accumulators ``acc``); a buffer without it has its own.

    Of a tensor with batches it is the block's own matrix: batch letters are the work's alone.

    ``shape`` gives letters in storage order, the last one contiguous, and tile extents; a global
    buffer's extents are None (the problem's).  A tile has ``stages``, rows with ``pad`` additional
    elements, and chunks of rows that ``swizzle`` permutes. With ``atom_width`` this many elements
    along the last letter are a row: the tile is cut along it into atom columns, which lie one
    after another. ``spare`` rows after each atom column of each stage are unused: the next atom
    column starts at an address that TMA accepts. ``spread`` belongs to register buffers. Of a
    fragment whose elements are split there are ``parts``, and so of a tile, and of a tensor's
    planes, whose parts lie in memory.
    """

    SYNTAX = "{role} {name}{shape} {dtype}"

    name: str
    role: Role
    dtype: DType
    shape: tuple[tuple[str, int | None], ...]
    of: str = ""
    pad: int = keeps_order(0)
    stages: int = 1
    atom_width: int = keeps_order(0)
    spare: int = keeps_order(0)
    swizzle: Swizzle | None = keeps_order(None)
    spread: Spread | None = None
    parts: int = 1
    origins: Origins = ()

    @property
    def space(self) -> Space:
        return self.role.space

    @property
    def tensor(self) -> str:
        """The tensor whose elements it has; its own name if it is one."""
        return self.of or self.name

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(letter for letter, _ in self.shape)

    def extent(self, letter: str) -> int:
        """The tile's extent along ``letter``; a bug for a global buffer."""
        size = dict(self.shape)[letter]
        assert size is not None
        return size

    @property
    def row(self) -> int:
        """Elements from the begin of a tile's row to the begin of the next, ``pad`` included."""
        return (self.atom_width or self.extent(self.letters[-1])) + self.pad

    @property
    def atom_columns(self) -> int:
        """Swizzle atom columns of a stage of the tile; 1 if it has a single one."""
        return self.extent(self.letters[-1]) // self.atom_width if self.atom_width else 1

    @property
    def atom_column_rows(self) -> int:
        """Rows of an atom column, ``spare`` included."""
        return prod(self.extent(letter) for letter in self.letters[:-1]) + self.spare

    @property
    def bytes(self) -> int:
        """Of a tile in shared memory, all stages together."""
        rows = self.atom_columns * self.atom_column_rows
        return self.stages * self.parts * rows * self.row * BYTES[self.dtype]
