"""What an instruction of a contraction multiplies, and what holds its operands: atoms, as data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from gemmgen.base.record import record
from gemmgen.ir.dtypes import BYTES, FP8, HALVES, DType
from gemmgen.ir.fragment_layout import Digit, FragmentLayout, Side

Atom = Literal[
    "fma",
    "wmma",
    "m16n8k16",
    "m16n8k8",
    "m16n8k32",
    "m16n8k8_tf32",
    "m16n8k16_f64",
    "m16n8k8_f64",
    "m16n8k4_f64",
    "m8n8k4_f64",
    "m16n8k16_f32",
    "m64nNk16",
    "m64nNk16_f32",
    "m64nNk32",
    "m64nNk32_i8",
    "m64nNk8",
]
"""``fma``: one product of one thread.  The others are a warp's, on tensor cores: ``wmma``
multiplies matrices of 16 x 16, ``m16n8k16`` (``mma.sync``) what its name says.  ``m64nNk16``
(``wgmma``) is a warpgroup's, of as many columns as it has."""

Product = tuple[DType, DType, DType]
"""The types of A, of B and of the accumulators."""

Via = Literal["wmma", "mma", "wgmma"]
"""The instructions of tensor cores: ``wmma``, ``mma.sync``, ``wgmma.mma_async``."""

Holding = Literal["thread", "lanes", "opaque", "known", "warpgroup"]
"""What holds the operands and accumulators of a contraction, which chooses how it is lowered.

``thread``: each thread the elements that it owns.  ``lanes``: the lanes of a warp have partial sums
of the same elements, each over its own k.  ``opaque``: the lanes of a warp hold a piece together,
and which lane has which element is unspecified.  ``known``: they hold it together, and the atom
states which lane has which element. ``warpgroup``: the lanes of four warps hold the accumulators
so, and the operands stay in shared memory.
"""

Loads = Literal["rows", "elements", "parts"]
"""How lanes load what they hold of an operand from shared memory: ``rows`` of 16 bytes by
``ldmatrix``, which gives each lane 4 bytes of one; or each lane its ``elements``, one by one; or
rows, whose elements they then split into ``parts``."""


@record
class AtomTraits:
    """One atom (CuTe: ``MMA_Traits``): ``m`` x ``n`` accumulators of ``k`` products each, by
    ``lanes`` threads together.

    Operands and accumulators are of one of ``products`` (none: of any types, converted to that of
    the accumulators). ``line``: the distance of an operand's lines in shared memory is a multiple
    of this many bytes; ``aligned``: the alignment of its loads and stores in shared memory, in
    bytes. An operand lies along k there, unless its type is one of ``mn_major``. With ``splits``
    operands are of that type there, and are split into parts of those of ``products`` as they are
    read.

    ``accumulators``, ``a`` (its rows along m, its columns along k) and ``b`` (along k and n) are
    what a lane holds of each, where that is known; it ``loads`` operands so. Operands that no lane
    holds are read from shared memory by the instruction itself, which multiplies up to
    ``together_n`` pieces along n at once, an odd number of them only up to ``odd_n``.

    ``cuts``: operands of a type that is rounded elsewhere (tf32) are cut off: what reads f32 in
    shared memory drops its lower bits.
    """

    m: int
    n: int
    k: int
    lanes: int
    holding: Holding
    products: tuple[Product, ...] = ()
    line: int = 1
    aligned: int = 16
    mn_major: tuple[DType, ...] = HALVES
    splits: DType | None = None
    accumulators: FragmentLayout | None = None
    a: FragmentLayout | None = None
    b: FragmentLayout | None = None
    loads: Loads = "rows"
    together_n: int = 1
    odd_n: int = 32
    cuts: bool = False

    @property
    def types(self) -> tuple[DType, ...]:
        """Of operands."""
        return tuple(dict.fromkeys(a for a, _, _ in self.products))

    @property
    def shape(self) -> str:
        """As PTX names it."""
        return self.shape_of(self.n)

    def shape_of(self, n: int) -> str:
        """The same of an instruction that multiplies ``n`` columns."""
        return f"m{self.m}n{n}k{self.k}"

    @property
    def registers(self) -> int:
        """A lane's share of one piece of the accumulators."""
        return self.m * self.n // self.lanes

    @property
    def in_place(self) -> bool:
        """Whether operands are read where they lie in shared memory: no lane holds them."""
        return self.holding == "warpgroup"

    @property
    def most_n(self) -> int:
        """Columns that one instruction multiplies at most."""
        return self.n * self.together_n

    def columns(self, size: int) -> int:
        """The most columns up to ``size``, at least a piece's, that one instruction multiplies."""
        pieces = max(1, min(size // self.n, self.together_n))
        return self.n * (pieces - (pieces % 2 if pieces > self.odd_n else 0))

    def warps(self, side: Side) -> int:
        """Warps along a side of a piece of the accumulators."""
        return self.accumulators.warps(side) if self.accumulators else 1

    def pieces(self, side: Side) -> int:
        """Pieces of the lanes' shares along a side, as the accumulators are distributed."""
        return self.accumulators.along(side)[0] if self.accumulators else 1

    @property
    def together(self) -> int:
        """Lanes that share an element of the accumulators, as far as is known."""
        return 1 if self.accumulators else self.lanes

    def share(self, side: Side) -> tuple[int, int]:
        """Lanes along a side of a piece of the accumulators, and neighbours that each of them
        has."""
        if self.accumulators is None:
            return 1, self.m if side == "row" else self.n
        _, lanes, width = self.accumulators.along(side)
        return lanes, width


FMA = AtomTraits(1, 1, 1, 1, "thread")

# The CUDA C++ Programming Guide, "Warp Matrix Functions": shapes, types, that a leading dimension
# is a multiple of 16 bytes, and that pointers are aligned to 256 bits.  The PTX manual asks f16's
# lines for 32 bytes; ldmatrix, which compilers make of it, needs 16.  Every architecture here
# multiplies the types that it has at all.
_OF_HALVES: tuple[Product, ...] = (("f16", "f16", "f32"), ("bf16", "bf16", "f32"))
WMMA = AtomTraits(16, 16, 16, 32, "opaque", _OF_HALVES, line=16, aligned=32)


# The PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "for mma.m16n8k8" and
# "for mma.m16n8k32": groups of four lanes have a row of A and of the accumulators, or a column of
# B, and each lane neighbours that fill a register, of the accumulators two. The rows that ldmatrix
# loads are 16 bytes, of four lanes, and begin at a multiple of 16.
_ROWS: Digit = (8, "row", 1)
_COLUMNS: Digit = (8, "column", 1)
_ACCUMULATORS = FragmentLayout(((4, "column", 2), _ROWS), ((2, "column", 1), (2, "row", 8)))


def _of_a_warp(products: tuple[Product, ...], rows: int = 2) -> AtomTraits:
    """An ``mma.sync`` of 16 x 8, with ``rows`` (1 or 2) of 16 bytes along k."""
    each = 4 // BYTES[products[0][0]]  # elements in a register
    a: list[Digit] = [(each, "column", 1), (2, "row", 8), (2, "column", 4 * each)]
    b: list[Digit] = [(each, "row", 1), (2, "row", 4 * each)]
    return AtomTraits(
        *(16, 8, 4 * each * rows, 32, "known"),
        products=products,
        line=16,
        accumulators=_ACCUMULATORS,
        a=FragmentLayout(((4, "column", each), _ROWS), tuple(a[: 1 + rows])),
        b=FragmentLayout(((4, "row", each), _COLUMNS), tuple(b[:rows])),
    )


# The PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f64 floating point type" and "for
# mma.m16n8k4", "m16n8k8" and "m16n8k16" with it: a register is an element, of 4 neighbours along k.
def _of_doubles(rows: int, steps: int) -> AtomTraits:
    """An ``mma.sync`` of f64: ``rows`` (1 or 2) times 8 rows, ``steps`` of 4 along k."""
    return AtomTraits(
        *(8 * rows, 8, 4 * steps, 32, "known"),
        products=(("f64", "f64", "f64"),),
        mn_major=("f64",),
        accumulators=FragmentLayout(_ACCUMULATORS.lane, _ACCUMULATORS.register[:rows]),
        a=FragmentLayout(((4, "column", 1), _ROWS), ((rows, "row", 8), (steps, "column", 4))),
        b=FragmentLayout(((4, "row", 1), _COLUMNS), ((steps, "row", 4),)),
        loads="elements",
    )


# f32 as bf16 terms: lane c of four gets element c of a 16-byte row that ldmatrix loads, and element
# c + 4 of the next row.  These two fill a register of each term, where PTX has columns 2c and
# 2c + 1: k is permuted within an instruction, for A and B alike.
_OF_PARTS = replace(
    _of_a_warp((("bf16", "bf16", "f32"),)),
    splits="f32",
    a=FragmentLayout(
        ((4, "column", 1), _ROWS), ((2, "column", 4), (2, "row", 8), (2, "column", 8))
    ),
    b=FragmentLayout(((4, "row", 1), _COLUMNS), ((2, "row", 4), (2, "row", 8))),
    loads="parts",
)


def _of_a_warpgroup(k: int, products: tuple[Product, ...], **more: Any) -> AtomTraits:
    """A ``wgmma`` of 64 rows and ``k`` elements, 32 bytes, along k.

    The PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", and those of k8 and k32: each
    warp of four has 16 rows, which its lanes hold as those of m16n8k16 do; N is 8 to 256 in steps
    of 8.
    """
    accumulators = FragmentLayout(
        _ACCUMULATORS.lane, _ACCUMULATORS.register, warp=((4, "row", 16),)
    )
    shape = (64, 8, k, 128, "warpgroup")
    return AtomTraits(
        *shape, products, line=16, aligned=1024, accumulators=accumulators, together_n=32, **more
    )


_OF_BYTES: tuple[Product, ...] = tuple((a, b, "f32") for a in FP8 for b in FP8)
_OF_INTEGERS: tuple[Product, ...] = (("i8", "i8", "i32"),)

ATOMS: dict[Atom, AtomTraits] = {
    "fma": FMA,
    "wmma": WMMA,
    "m16n8k16": _of_a_warp(_OF_HALVES),
    "m16n8k8": _of_a_warp((("f16", "f16", "f32"),), rows=1),
    "m16n8k32": _of_a_warp((*_OF_INTEGERS, *_OF_BYTES)),
    "m16n8k8_tf32": _of_a_warp((("tf32", "tf32", "f32"),)),
    "m16n8k16_f64": _of_doubles(2, 4),
    "m16n8k8_f64": _of_doubles(2, 2),
    "m16n8k4_f64": _of_doubles(2, 1),
    "m8n8k4_f64": _of_doubles(1, 1),
    "m16n8k16_f32": _OF_PARTS,
    "m64nNk16": _of_a_warpgroup(16, _OF_HALVES),
    # f32 as terms; every term has a tile of its own in shared memory.
    "m64nNk16_f32": _of_a_warpgroup(
        16, tuple(reversed(_OF_HALVES)), splits="f32", mn_major=(*HALVES, "f32")
    ),
    "m64nNk32": _of_a_warpgroup(32, _OF_BYTES),
    # The PTX ISA, "wgmma.mma_async", integers: N is 8, 16, 24, 32, 48, 64 and on in steps of 16.
    "m64nNk32_i8": _of_a_warpgroup(32, _OF_INTEGERS, odd_n=3),
    # It reads 32 bits of an element, so no conversion can follow the load, and multiplies the upper
    # 19 (decision 66).
    "m64nNk8": _of_a_warpgroup(8, (("tf32", "tf32", "f32"),), cuts=True),
}

VIA: dict[Via, tuple[Atom, ...]] = {
    "wmma": ("wmma",),
    "mma": (
        *("m16n8k16", "m16n8k8", "m16n8k32", "m16n8k8_tf32"),
        *("m16n8k16_f64", "m16n8k8_f64", "m16n8k4_f64", "m8n8k4_f64", "m16n8k16_f32"),
    ),
    "wgmma": ("m64nNk16", "m64nNk16_f32", "m64nNk32", "m64nNk32_i8", "m64nNk8"),
}
"""The atoms of each instruction, the one to prefer first."""
