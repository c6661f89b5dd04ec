"""Matrices whose elements lanes hold as ``ir/atoms.py`` states: ldmatrix, stmatrix, mma.sync."""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np

from gemmgen.interpreter.fragments import matrix_elements
from gemmgen.interpreter.known_fragments import matrix_rows, own_elements
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.fragment_layout import FragmentLayout
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lane_matrices import SplitMatrices, packed, row_of
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Ints
from gemmgen.prove import shared_accesses, symbolic_values, term_totals
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.shared_accesses import flat_inside
from gemmgen.prove.state import SharedPlace, WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext
from gemmgen.prove.warp_products import (
    FragmentOperand,
    add_products,
    converge,
    held,
    keep,
    register_of,
)


def load(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """ldmatrix: a lane gets elements of rows that other lanes name."""
    target, row = node.operands
    place, first = register_of(context, state, scope, target)
    for e, (name, at) in enumerate(_places(context, node, row, state, scope)):
        value = shared_accesses.load_cells(context, state, name, at)
        keep(context, state, place, first + e, value)


def store(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """stmatrix: its opposite."""
    row, source = node.operands
    place, first = register_of(context, state, scope, source)
    for e, (name, at) in enumerate(_places(context, node, row, state, scope)):
        value = held(state, place, first + e)
        shared_accesses.save_cells(context, state, name, at, value)


def _places(
    context: WalkContext, node: Instruction, row: Expr, state: WalkState, scope: WalkScope
) -> list[tuple[str, Ints | None]]:
    """The array, and the places of each of a lane's elements, of all lanes."""
    converge(context, state, f"some lanes of a warp do not come to {node.name}")
    matrices = matrix_rows(node)
    assert isinstance(row, Element)
    place = symbolic_values.located(context, state, scope, row)
    if not isinstance(place, SharedPlace):
        raise Unsupported(f"{node.name} of {row.buffer}")
    each = packed(matrices.dtype)
    table = matrix_elements(context.threads, matrices.count, each, matrices.transposed)
    named = shared_accesses.cells_of(context, state, place)
    if named is None:
        return [(place.name, None)] * len(table)
    shared_accesses.check_aligned(context, state, place.name, named, row_of(matrices.dtype))
    found = [np.broadcast_to(named, context.threads)[names] + column for names, column in table]
    return [(place.name, flat_inside(context, state, place.name, at)) for at in found]


def split(context: WalkContext, node: SplitMatrices, state: WalkState, scope: WalkScope) -> None:
    """Terms of the elements that ldmatrix has loaded."""
    place, first = register_of(context, state, scope, node.source)
    for term in range(node.parts):
        target, own = register_of(context, state, scope, node.part(term))
        for e in range(packed(node.dtype) * node.count):
            value = term_totals.of_term(held(state, place, first + e), term)
            keep(context, state, target, own + e, value)


def mma(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    """mma.sync: accumulators of all lanes, in an array whose last index is a column's."""
    traits = ATOMS[cast(Atom, node.get("atom"))]
    total, *_, of_a, of_b = node.operands
    assert traits.a and traits.b and traits.accumulators
    place, first = register_of(context, state, scope, total)
    across = place.sizes[-1]
    numbers = [first + row * across + column for row, column in own_elements(traits.accumulators)]
    left = FragmentOperand(*register_of(context, state, scope, of_a), _owners(traits.a))
    right = FragmentOperand(*register_of(context, state, scope, of_b), _owners(traits.b))
    add_products(context, state, place, numbers, _table(traits.accumulators), left, right, traits.k)


@cache
def _owners(layout: FragmentLayout) -> dict[tuple[int, int], tuple[int, int]]:
    """The lane and the register of each element of a matrix."""
    return {
        layout.element(lane, register): (lane, register)
        for lane in range(WARP)
        for register in range(layout.registers)
    }


@cache
def _table(layout: FragmentLayout) -> list[tuple[Ints, Ints]]:
    """The rows and the columns of each register, of all lanes."""
    at = [[layout.element(lane, r) for lane in range(WARP)] for r in range(layout.registers)]
    return [(each[:, 0], each[:, 1]) for each in map(np.array, at)]
