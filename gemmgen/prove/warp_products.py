"""What the lanes of a warp do together: products of elements that others hold, and barriers."""

from __future__ import annotations

import numpy as np

from gemmgen.base.record import record
from gemmgen.interpreter.fragments import HALF
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.lane_matrices import OperandArray, packed
from gemmgen.ir.target import WARP
from gemmgen.ir.warp_matrices import FragmentArray
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import (
    condition_queries,
    data,
    element_accesses,
    shared_state,
    symbolic_values,
    warp_clocks,
)
from gemmgen.prove.data import Data, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import fixed
from gemmgen.prove.product_runs import ElementsAlongK, add_along_k, is_run
from gemmgen.prove.state import RegisterPlace, WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

UNSET = UnknownData("a register that was never set", certain=True)


# ---- registers ----


def registers(state: WalkState, scope: WalkScope, node: OperandArray | FragmentArray) -> None:
    """Declares the registers of fragments."""
    each = packed(node.dtype) if isinstance(node, OperandArray) else HALF
    key, sizes = scope.key(node.name), (*node.sizes, each)
    scope.names[node.name] = RegisterPlace(key, sizes)
    for i in range(int(np.prod(sizes))):
        state.registers[key, i] = data.ZERO if node.zero else UNSET


def register_of(
    context: WalkContext, state: WalkState, scope: WalkScope, element: Expr
) -> tuple[RegisterPlace, int]:
    """The registers of an element, and the number of its first one."""
    assert isinstance(element, Element)
    place = symbolic_values.located(context, state, scope, element)
    if not isinstance(place, RegisterPlace):
        raise Unsupported(f"a fragment in {element.buffer}")
    left = len(place.sizes) - len(place.first)
    indices = (*place.first, *(fixed(0),) * left)
    own = RegisterPlace(place.key, place.sizes, indices)
    first = element_accesses.register_number(context, state, own, 0)
    if first is None:
        raise Unsupported(f"a fragment outside {element.buffer}")
    return own, first


def held(state: WalkState, place: RegisterPlace, number: int) -> Data:
    return state.registers.get((place.key, number), UNSET)


def keep(
    context: WalkContext, state: WalkState, place: RegisterPlace, number: int, value: Data
) -> None:
    element_accesses.keep_register(context, state, place, number, value)


# ---- products ----


@record
class FragmentOperand:
    """Registers of one operand: ``owner`` of a row and a column is the lane, and the register."""

    place: RegisterPlace
    first: int
    owners: dict[tuple[int, int], tuple[int, int]]


def add_products(
    context: WalkContext,
    state: WalkState,
    place: RegisterPlace,
    numbers: list[int],
    elements: list[tuple[Ints, Ints]],
    left: FragmentOperand,
    right: FragmentOperand,
    depth: int,
) -> None:
    """Adds ``depth`` products to the registers ``numbers``, which hold these ``elements``."""
    converge(context, state, "some lanes of a warp do not come to a multiplication")
    kept: dict[tuple[bool, bytes], ElementsAlongK] = {}

    def along_k(is_left: bool, at: Ints) -> ElementsAlongK:
        key = is_left, at.tobytes()
        if key not in kept:
            operand = left if is_left else right
            places = [[(int(i), k) if is_left else (k, int(i)) for i in at] for k in range(depth)]
            found = [_taken(context, state, operand, each) for each in places]
            first = found[0] if is_run(context, found) else None
            kept[key] = ElementsAlongK(found.__getitem__, first)
        return kept[key]

    for number, (rows, columns) in zip(numbers, elements, strict=True):
        a, b = along_k(True, rows), along_k(False, columns)
        value = add_along_k(context, state, a, b, depth, held(state, place, number))
        keep(context, state, place, number, value)


def _taken(
    context: WalkContext, state: WalkState, operand: FragmentOperand, at: list[tuple[int, int]]
) -> Data:
    """Of each lane the element of an operand that it multiplies."""
    owners = [operand.owners[each] for each in at]
    lanes, lane = tuple(own for own, _ in owners), context.every % WARP
    parts: list[tuple[Bools, Data]] = []
    for register in sorted({register for _, register in owners}):
        own = held(state, operand.place, operand.first + register)
        there = np.array([each == register for _, each in owners])
        parts.append((there[lane], context.permuted(own, lanes)))
    found = data.gathered(parts) if len(parts) > 1 else parts[0][1]
    if found is None:
        raise Unsupported("lanes that multiply different kinds of elements")
    return found


# ---- lanes that wait for each other ----


def sync_warp(context: WalkContext, state: WalkState) -> None:
    """What a lane did before it, the others of its warp see after it."""
    converge(context, state, "some lanes of a warp do not come to this barrier")
    if state.pending is not None:
        raise Unsupported("a barrier of warps under a condition of each thread")
    warps = np.unique(context.active(state) // WARP)
    for cells in state.cells.values():
        shared_state.meet_in_warps(cells, warps)
        if cells.trace is not None:
            warp_clocks.lanes_meet(cells.trace, warps)


def converge(context: WalkContext, state: WalkState, about: str) -> None:
    """That all lanes of a warp, or none, are here."""
    context.check(state, "barriers", False, about)
    if state.mask is not None:
        rows = state.mask.reshape(-1, WARP)
        wrong = rows.any(axis=1) & ~rows.all(axis=1)
        if wrong.any():
            warp = int(np.argmax(wrong))
            context.violated(state, "barriers", about, warp * WARP + int(np.argmin(rows[warp])))
    apart = [one for one in state.path if not condition_queries.is_uniform(one, WARP)]
    together = tuple(one for one in state.path if condition_queries.is_uniform(one, WARP))
    for one in apart:
        base = state.branch()
        base.path = together
        context.claim(base, "barriers", one, about)
