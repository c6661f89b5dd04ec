"""Where elements are: in a matrix, in a shared tile, and in a thread's registers."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.ir import names
from gemmgen.ir.assumptions import equal_to
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.expanded import Stage
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.parameters import ld_name
from gemmgen.ir.problem import Tensor
from gemmgen.ir.simplify import add, div, mod, mul, sub, wide_product
from gemmgen.lower import bounds
from gemmgen.lower.context import THREADS, Context
from gemmgen.lower.swizzle import Known, in_atom_column, swizzled


def pitch(context: Context, tensor: str) -> Var:
    """A matrix's leading dimension: its parameter, or the extent it is assumed equal to."""
    return Var(equal_to(context.program, ld_name(tensor)))


def in_global(
    context: Context, tensor: str, index: Mapping[str, Expr], letters: tuple[str, ...] | None = None
) -> Element:
    """An element of the block's matrix of a tensor in global memory, at its flat 64-bit offset.

    ``letters`` are those that a tensor is read by which is not a buffer, but the epilogue's own.
    """
    matrix = context.problem.matrix(letters or context.buffer(tensor).letters)
    if len(matrix) < 2:
        return Element(tensor, (index[matrix[0]] if matrix else Int(0),))
    row = wide_product(index[matrix[0]], pitch(context, tensor))
    return Element(tensor, (add(row, index[matrix[-1]]),))


def in_blocks(context: Context, tensor: Tensor, index: Mapping[str, Expr]) -> Element:
    """The factor of the element at ``index``: letters of ``tensor`` number blocks of elements."""
    blocks = {x: div(index[plain(x)], Int(block(x))) for x in tensor.letters}
    return in_global(context, tensor.name, blocks, tensor.letters)


def in_shared(
    context: Context,
    tile: Buffer,
    stage: Stage,
    index: Mapping[str, Expr],
    *,
    steps: Mapping[str, int] | None = None,
    below: Mapping[str, int] | None = None,
) -> Element:
    """An element of a shared tile, in its layout's order.

    Variables of ``index`` are multiples of what ``steps`` says, and smaller than ``below``.
    """
    row, column = tile.letters
    at, swizzle = index[column], tile.swizzle
    atom_column: tuple[Expr, ...] = ()
    if swizzle is not None:
        origins = {names.thread_origin(x).name: context.axis(x).width for x in context.letters}
        unrolled = frozenset((context.problem.k, *(f"reg_{x}" for x in context.letters)))
        known = Known(_constants(context), origins | dict(steps or {}), below or {}, unrolled)
        if tile.atom_width:
            number, at = in_atom_column(at, names.atom_width(tile.tensor), known)
            atom_column = (number,)
        at = swizzled(swizzle, index[row], tile.extent(row), at, known)
    return Element(tile.name, (*_present(stage), *atom_column, index[row], at))


def block_extent(tile: Buffer, letter: str) -> Expr:
    """The extent of an operand's tile along a letter, by name; of one that numbers blocks as it
    is."""
    return names.block(letter) if block(letter) == 1 else Int(tile.extent(letter))


def begin_of_box(
    tile: Buffer, stage: Stage, within: Mapping[str, Expr], part: Expr | None = None
) -> Element:
    """Where a box begins in a shared tile that lies ``within`` it from there on: of a tile in atom
    columns with an atom column's row, of one in parts in the tile of a ``part``."""
    row, column = (within[letter] for letter in tile.letters)
    place = (row, column)
    if tile.atom_width:
        place = (div(column, names.atom_width(tile.tensor)), row, Int(0))
    return Element(tile.name, (*_present(stage), *_present(part), *place))


def _constants(context: Context) -> dict[str, int]:
    """The values of the constants that an index may name."""
    found = {THREADS.name: context.kernel.threads}
    found |= {name.name: width for name, width in context.vectors.values()}
    found |= {
        names.atom_width(b.tensor).name: b.atom_width
        for b in context.kernel.buffers
        if b.atom_width
    }
    for letter in (*context.letters, context.problem.k):
        found[names.block(letter).name] = bounds.tile(context, letter)
    for letter in context.letters:
        axis = context.axis(letter)
        found[names.warp(letter).name] = axis.extent // axis.warps
        found[names.registers(letter).name] = axis.registers
        found[names.piece(letter).name] = axis.width
        found[names.lanes(letter).name] = axis.lanes
        if axis.rounds > 1:
            found[names.fragments(letter).name] = axis.rounds
    return found


def own(context: Context, letter: str, register: Expr, step: int = 1) -> Expr:
    """The tile's element in the thread's register ``register`` (a multiple of ``step``)."""
    return of_thread(context, letter, names.thread_origin(letter), register, step)


def width(context: Context, letter: str) -> Expr:
    """Neighbours that a thread owns from its first element on."""
    axis = context.axis(letter)
    if axis.width == 1:
        return Int(1)
    return names.registers(letter) if axis.pieces == 1 else names.piece(letter)


def of_thread(context: Context, letter: str, first: Expr, register: Expr, step: int = 1) -> Expr:
    """The same of the thread whose first element is ``first``."""
    axis = context.axis(letter)
    if axis.registers == 1:
        return first
    if axis.pieces == 1:
        return add(first, register)
    if axis.rounds > 1:
        rounds = names.fragments(letter)
        share = div(names.registers(letter), rounds)
        before = mul(div(register, share), div(names.block(letter), rounds))
        return add(first, before, mul(mod(register, share), names.lanes(letter)))
    lanes, piece = names.lanes(letter), names.piece(letter)
    if axis.width == 1 or step == axis.width:
        return add(first, mul(register, lanes))
    jump = mul(div(register, piece), mul(piece, lanes))
    return add(first, jump, mod(register, piece))


def sum_at(context: Context, registers: Mapping[str, Expr]) -> Element | Var:
    """The register that holds the sum at these register indices."""
    if context.scalar_accumulator:
        return Var("acc")
    return Element("acc", tuple(registers[letter] for letter in context.letters))


def fragment_at(slot: Stage, name: str, register: Expr) -> Element:
    """A register of a fragment."""
    return Element(name, (*_present(slot), register))


def _present(stage: Stage) -> tuple[Expr, ...]:
    return () if stage is None else (stage,)


def last_of(first: Expr, width: Expr) -> Expr:
    """The index of the last of ``width`` elements."""
    return sub(add(first, width), Int(1))
