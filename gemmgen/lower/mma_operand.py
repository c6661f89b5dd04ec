"""An operand of mma.sync: what a lane holds of it, and how that is loaded from shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, AtomTraits
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.control import Define
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import contraction, tile_of
from gemmgen.ir.expanded import Fetch, Stage
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.fragment_layout import FragmentLayout, Side
from gemmgen.ir.lane_matrices import packed
from gemmgen.ir.thread_code import Node
from gemmgen.lower import addresses
from gemmgen.lower.context import Context


@record
class MmaOperand:
    """An operand of the contraction: what a lane holds of its pieces."""

    letter: str
    side: Side
    """The side of the operand that ``letter`` runs along."""
    layout: FragmentLayout
    tile: Buffer
    fragment: Buffer
    pieces: int
    """Of a warp, along ``letter``."""

    @property
    def registers(self) -> int:
        """Of one piece."""
        return self.layout.registers // packed(self.fragment.dtype)

    @property
    def mn_major(self) -> bool:
        """Whether what is contiguous in shared memory runs along ``letter``, not along k."""
        return self.tile.letters[-1] == self.letter


@record
class Loading:
    """How an operand's registers are loaded (``ir.atoms.Loads``)."""

    array: Callable[[str, DType, tuple[Expr, ...], tuple[int, ...]], Node]
    """The node that declares a lane's registers."""
    together: Callable[[MmaOperand], int]
    """Pieces that one load fills."""
    load: Callable[[Context, MmaOperand, Fetch, Expr], tuple[Node, ...]]
    """The load of the piece of this number, and of those that come together with it."""
    origins: Callable[[Context, MmaOperand], Iterator[Define]]
    """Where a lane's loads begin in the block's tile."""


def operand(context: Context, fragment: str) -> MmaOperand:
    """The operand that ``fragment`` is of."""
    traits, (m, n) = atom_of(context), context.letters
    is_a = contraction(context.kernel).a == fragment
    letter, layout = (m, traits.a) if is_a else (n, traits.b)
    assert layout is not None
    own = context.buffer(fragment)
    tile = tile_of(context.kernel, own.tensor)
    assert tile is not None
    axis = context.axis(letter)
    pieces = axis.extent // axis.warps // extent(context, letter)
    side: Side = "row" if is_a else "column"
    return MmaOperand(letter, side, layout, tile, own, pieces)


def registers(own: MmaOperand, slot: Stage, register: Expr, part: int = 0) -> Element:
    """A register of an operand's fragments, or of a part of them."""
    found = addresses.fragment_at(slot, own.fragment.name, register)
    if own.fragment.parts == 1:
        return found
    *outer, last = found.indices
    return Element(found.buffer, (*outer, Int(part), last))


def extent(context: Context, letter: str) -> int:
    """What one instruction multiplies along a letter."""
    traits, problem = atom_of(context), context.problem
    return {problem.m: traits.m, problem.n: traits.n, problem.k: traits.k}[letter]


def atom_of(context: Context) -> AtomTraits:
    """What multiplies."""
    return ATOMS[context.kernel.spread.atom]
