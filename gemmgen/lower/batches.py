"""The block's matrices: their numbers along the batch letters, and the pointers moved to them.

A block's number counts the tiles of a matrix fastest, then the matrices, the output's last batch
letter first.  After these lines each tensor's name means the block's own matrix, and the rest of
the kernel knows of no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gemmgen.ir.control import Block, Define
from gemmgen.ir.expr import Binary, Expr, Int, Var
from gemmgen.ir.problem import Tensor
from gemmgen.ir.simplify import add, div, mod
from gemmgen.ir.thread_code import Advance, Node
from gemmgen.lower import bounds
from gemmgen.lower.context import Context
from gemmgen.lower.tensor_maps import maps

EACH, OWN = Var("matrix_tiles"), Var("tile")
"""The tiles of one matrix of C, and which of them is the block's."""


def matrices(context: Context, counts: tuple[Node, ...], number: Expr) -> tuple[Node, ...]:
    """``counts`` define the tiles along rows and columns, ``number`` is the block's among those of
    all matrices."""
    letters = context.kernel.work.batch
    body = (*counts, *_numbers(context, number), *_moves(context))
    what = " and ".join([", ".join(letters[:-1]), letters[-1]] if len(letters) > 1 else letters)
    return (Block(f"the block's {what}, and its matrices", (), body),)


def first_matrices(context: Context) -> tuple[Node, ...]:
    """The pointers moved back, for the block's next tile."""
    moves = tuple(replace(move, back=True) for move in _moves(context))
    return (Block("back to the first matrices", (), moves),) if moves else ()


def tiles_of_each(context: Context) -> Define:
    """Tiles of one matrix."""
    rows, columns = context.letters
    both = (counted(context, letter) for letter in (rows, columns))
    return Define(EACH.name, Binary("*", *both))


def counted(context: Context, letter: str) -> Var:
    """How many blocks, or clusters, cover the extent along ``letter``."""
    return Var(f"{'clusters' if context.kernel.work.cluster else 'blocks'}_{letter}")


def _numbers(context: Context, number: Expr) -> Iterator[Define]:
    """``b = number / matrix_tiles / size_h``, ``h = number / matrix_tiles % size_h``."""
    letters, left = context.kernel.work.batch, div(number, EACH)
    found: list[Define] = []
    for letter in reversed(letters[1:]):
        found.append(Define(letter, mod(left, bounds.extent(context, letter))))
        left = div(left, bounds.extent(context, letter))
    yield Define(letters[0], left)
    yield from reversed(found)


def _moves(context: Context) -> Iterator[Advance]:
    boxed = {one.tensor for one in maps(context) if not one.beside}
    for tensor in context.tensors:
        if tensor.name in boxed:
            continue  # a map has the batches as dimensions
        by = _offset(context, tensor)
        if by != Int(0):
            yield Advance(tensor.name, by)


def _offset(context: Context, tensor: Tensor) -> Expr:
    """Elements from a tensor's first to the block's matrix; strides are 64 bits wide."""
    strides = context.problem.strides(tensor)
    offsets: list[Expr] = []
    for letter in tensor.letters:
        if letter in strides:
            offsets.append(Var(strides[letter]) * Var(letter))
        elif letter in context.kernel.work.batch:
            offsets.append(Var(letter))
    return add(*offsets)
