"""An operand of mma.sync by ldmatrix: each lane supplies the address of a row of 16 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gemmgen.ir import names
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.control import Define
from gemmgen.ir.expanded import Fetch
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.fragment_layout import Digit, Side
from gemmgen.ir.instruction import Instruction, instruction
from gemmgen.ir.lane_matrices import ROWS, OperandArray, packed, row_of
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.lower import addresses, warps
from gemmgen.lower.context import LANE, Context
from gemmgen.lower.mma_operand import Loading, MmaOperand, atom_of, extent, registers

MOST = 4
"""Matrices that one ldmatrix loads."""


def together(own: MmaOperand) -> int:
    most = max(1, MOST // prod(count for count, _, _ in _matrices(own)))
    return next(count for count in range(most, 0, -1) if own.pieces % count == 0)


def loads(context: Context, own: MmaOperand, node: Fetch, number: Expr) -> tuple[Instruction, ...]:
    """As many as a piece needs; each further one begins further along k."""
    steps: tuple[int, ...] = (0,)
    for count, side, step in _matrices(own)[len(_at_once(own)) :]:
        assert side != own.side, "a piece is loaded whole along its letter"
        steps = tuple(first + step * digit for digit in range(count) for first in steps)
    return tuple(_load(context, own, node, number, further) for further in steps)


def _load(
    context: Context, own: MmaOperand, node: Fetch, number: Expr, further: int
) -> Instruction:
    k = context.problem.k
    first = row_origin(own.tile, own.letter)
    index: dict[str, Expr] = {
        own.letter: add(first, mul(number, names.instruction(own.letter))),
        k: add(row_origin(own.tile, k), node.k, Int(further)),
    }
    chunk = 1 if own.mn_major else row_of(own.tile.dtype)
    steps = {
        row_origin(own.tile, k).name: chunk,
        first.name: ROWS if own.mn_major else 1,
        k: atom_of(context).k,
        names.instruction(k).name: atom_of(context).k,
        names.instruction(own.letter).name: extent(context, own.letter),
    }
    source = addresses.in_shared(context, own.tile, node.stage, index, steps=steps)
    target = registers(own, node.slot, mul(number, Int(own.registers)))
    count = prod(count for count, _, _ in _at_once(own)) * together(own)
    dtype, transposed = own.tile.dtype, own.mn_major
    return instruction("ldmatrix", target, source, count=count, dtype=dtype, transposed=transposed)


def _matrices(own: MmaOperand) -> tuple[Digit, ...]:
    """The digits of the number of a matrix of a piece: those of a register but for elements within
    one."""
    within, found = packed(own.tile.dtype), list[Digit]()
    for digit in own.layout.register:
        if within > 1:
            within //= digit[0]
        elif digit[0] > 1:
            found.append(digit)
    return tuple(found)


def _at_once(own: MmaOperand) -> tuple[Digit, ...]:
    """Those of them that one ldmatrix has."""
    digits = _matrices(own)
    sizes = (prod(n for n, _, _ in digits[: at + 1]) for at in range(len(digits)))
    return digits[: sum(size <= MOST for size in sizes)]


def origins(context: Context, own: MmaOperand) -> Iterator[Define]:
    """The rows that a lane names."""
    of_warp, k = warps.coordinates(context), context.problem.k
    digits, lanes = _rows(own, extent(context, own.letter))
    for letter, side in ((own.letter, own.side), (k, None)):
        parts: list[Expr] = []
        if side is not None:
            parts.append(mul(of_warp[letter], names.warp(letter)))
        below = 1
        for count, along, step in digits:
            if (along == own.side) == (side is not None):
                digit = div(LANE, Int(below))
                if below * count < max(lanes, WARP):
                    digit = mod(digit, Int(count))
                parts.append(mul(digit, Int(step)))
            below *= count
        yield Define(row_origin(own.tile, letter).name, add(*parts))


def row_origin(tile: Buffer, letter: str) -> Var:
    """Where the row begins that a lane names to ldmatrix, along a letter: ``A_row_m``."""
    return Var(f"{tile.tensor}_row_{letter}")


def _rows(own: MmaOperand, piece: int) -> tuple[tuple[Digit, ...], int]:
    """The digits of a lane's number, which say the row of a matrix that it names: first those
    of the row, then those of the matrix; and how many lanes name one.  ``piece``: a piece's
    extent along the letter."""
    along: Side = "row" if own.side == "column" else "column"
    first: Digit = (ROWS, along if own.mn_major else own.side, 1)
    count = together(own)
    pieces: tuple[Digit, ...] = ((count, own.side, piece),) if count > 1 else ()
    digits: list[Digit] = []
    for count, side, step in (first, *_at_once(own), *pieces):
        if digits and digits[-1][1:] == (side, step // digits[-1][0]):
            digits[-1] = (digits[-1][0] * count, side, digits[-1][2])
        else:
            digits.append((count, side, step))
    return tuple(digits), prod(count for count, _, _ in digits)


LOADING = Loading(array=OperandArray, together=together, load=loads, origins=origins)
