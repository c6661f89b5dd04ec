"""The fragments of wmma, 16 x 16 elements.

Which lane holds which element is not documented.  Any layout proves the same, as fragments are
loaded, multiplied and stored by whole warps; here a lane holds half of a line, as in the
interpreter.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gemmgen.interpreter.fragments import ALIGNED, HALF, SIDE
from gemmgen.ir.atoms import WMMA
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.target import WARP
from gemmgen.ir.warp_matrices import Line, LoadFragment, MultiplyFragments, StoreFragment
from gemmgen.numerics.operators import Ints
from gemmgen.prove import shared_accesses, symbolic_values
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


def load(context: WalkContext, node: LoadFragment, state: WalkState, scope: WalkScope) -> None:
    place, first = register_of(context, state, scope, node.target)
    name, begin, apart = _lines(context, node.source, node.pitch, node.dtype, state, scope)
    line, column = _own_line(context)
    for e in range(HALF):
        at = None if begin is None else begin + line * apart + column + e
        at = None if at is None else flat_inside(context, state, name, at)
        keep(
            context,
            state,
            place,
            first + e,
            shared_accesses.load_cells(context, state, name, at),
        )


def store(context: WalkContext, node: StoreFragment, state: WalkState, scope: WalkScope) -> None:
    place, first = register_of(context, state, scope, node.source)
    name, begin, apart = _lines(context, node.target, node.pitch, "f32", state, scope)
    line, column = _own_line(context)
    for e in range(HALF):
        own = column + e
        step = line * apart + own if node.line == "row" else own * apart + line
        at = None if begin is None else flat_inside(context, state, name, begin + step)
        shared_accesses.save_cells(context, state, name, at, held(state, place, first + e))


def _own_line(context: WalkContext) -> tuple[Ints, Ints]:
    """The line of a fragment that each thread holds half of, and where that half begins."""
    lane = np.arange(context.threads) % WARP
    return lane // 2, lane % 2 * HALF


def _lines(
    context: WalkContext,
    element: Element,
    pitch: Expr,
    dtype: DType,
    state: WalkState,
    scope: WalkScope,
) -> tuple[str, Ints | None, int]:
    """The array of a fragment, where it begins there, and how far its lines are apart."""
    converge(context, state, "some lanes of a warp do not come to a fragment")
    place = symbolic_values.located(context, state, scope, element)
    apart = symbolic_values.form(context, state, scope, pitch).number()
    if not isinstance(place, SharedPlace) or apart is None:
        raise Unsupported(f"a fragment of {element.buffer}")
    begin = shared_accesses.cells_of(context, state, place)
    if begin is None:
        return place.name, None, apart
    begin = np.broadcast_to(begin, context.threads)
    shared_accesses.check_aligned(context, state, place.name, begin, ALIGNED // BYTES[dtype])
    wrong = apart * BYTES[dtype] % WMMA.line != 0
    context.check(state, "alignment", wrong, f"lines of {place.name} {apart} elements apart")
    first = begin.reshape(-1, WARP)[:, :1]
    apart_lanes = np.broadcast_to(first != begin.reshape(-1, WARP), (first.shape[0], WARP))
    about = f"lanes of a warp name different fragments of {place.name}"
    context.check(state, "barriers", apart_lanes.reshape(-1), about)
    return place.name, begin, apart


def multiply(
    context: WalkContext, node: MultiplyFragments, state: WalkState, scope: WalkScope
) -> None:
    """wmma: 16 x 16 x 16."""
    place, first = register_of(context, state, scope, node.sum)
    left = FragmentOperand(*register_of(context, state, scope, node.a), _halves(node.a_line))
    right = FragmentOperand(*register_of(context, state, scope, node.b), _halves(node.b_line))
    rows, columns = np.arange(WARP) // 2, np.arange(WARP) % 2 * HALF
    elements = [(rows, columns + e) for e in range(HALF)]
    numbers = [first + e for e in range(HALF)]
    add_products(context, state, place, numbers, elements, left, right, SIDE)


@cache
def _halves(line: Line) -> dict[tuple[int, int], tuple[int, int]]:
    """The same of a wmma fragment: a lane holds half of a line."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for i in range(SIDE):
        for j in range(SIDE):
            at = (i, j) if line == "row" else (j, i)
            found[at] = (2 * i + j // HALF, j % HALF)
    return found
