"""Products of a warpgroup, which reads both operands from shared memory (wgmma).

From its issue until a wait covers its group, a multiplication reads its operands, and its
accumulators are not the threads'.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np

from gemmgen.interpreter.async_products import accumulator_elements, descriptor_of
from gemmgen.interpreter.operand_places import operand_places
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Expr, Var
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.target import WARP, WARPGROUP
from gemmgen.ir.warpgroup_matrices import ROWS, UNIT, DescribeMatrix
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import (
    async_accesses,
    condition_queries,
    conditions,
    data,
    shared_accesses,
    shared_state,
    symbolic_values,
    warp_products,
)
from gemmgen.prove.conditions import Truth
from gemmgen.prove.data import Data
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.product_runs import ElementsAlongK, add_along_k, first_of_run
from gemmgen.prove.state import MatrixPlace, RegisterPlace, SharedPlace, WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

NAMES = (
    *("wgmma_fence", "wgmma_multiply", "wgmma_commit", "wgmma_wait", "wgmma_end", "wgmma_end_i32"),
)
NOT_ALL = "some threads of a warpgroup do not come to it"


def describe(
    context: WalkContext, node: DescribeMatrix, state: WalkState, scope: WalkScope
) -> None:
    place = symbolic_values.located(context, state, scope, node.first)
    stride = symbolic_values.form(context, state, scope, node.stride).number()
    if not isinstance(place, SharedPlace) or stride is None:
        raise Unsupported(f"the descriptor {node.name}")
    scope.names[node.name] = MatrixPlace(place, node.swizzle, stride, node.mn_major)


def execute(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    _converge(context, state)
    match node.name:
        case "wgmma_fence":
            pass
        case "wgmma_multiply":
            _multiply(context, node, state, scope)
        case "wgmma_commit":
            for key in state.multiplying:
                state.multiplying[key] += 1
            for trace in state.traces:
                async_accesses.commit_reads(trace, _warps(context, state))
        case "wgmma_wait":
            pending = symbolic_values.form(context, state, scope, node.operands[0]).number()
            assert pending is not None
            _wait(context, state, pending)
        case _:
            (accumulators,) = node.operands
            assert isinstance(accumulators, Var)
            place = symbolic_values.binding(scope, accumulators.name)
            _wait(context, state, 0)
            if isinstance(place, RegisterPlace):
                commits = state.multiplying.pop(place.key, 1)
                about = "multiplications of no group when their accumulators are read"
                context.check(state, "barriers", commits == 0, about)


def _warps(context: WalkContext, state: WalkState) -> Ints:
    return np.unique(context.active(state) // WARP)


def _converge(context: WalkContext, state: WalkState) -> None:
    """That all threads of a warpgroup, or none, are here."""
    context.check(state, "barriers", False, NOT_ALL)
    if state.clocks is None or context.block_threads % WARPGROUP:
        raise Unsupported("wgmma without mbarriers, or of a part of a warpgroup")
    if state.mask is not None:
        rows = state.mask.reshape(-1, WARPGROUP)
        wrong = rows.any(axis=1) & ~rows.all(axis=1)
        if wrong.any():
            context.violated(state, "barriers", NOT_ALL, int(np.argmax(wrong)) * WARPGROUP)
    if not all(condition_queries.is_uniform(one, WARPGROUP) for one in state.path):
        raise Unsupported("wgmma under a condition of each thread")


def _wait(context: WalkContext, state: WalkState, pending: int) -> None:
    assert state.clocks is not None
    for trace in state.traces:
        async_accesses.await_reads(state.clocks, trace, _warps(context, state), pending)


def _multiply(context: WalkContext, node: Instruction, state: WalkState, scope: WalkScope) -> None:
    upper, lower, of_a, of_b, accumulate = node.operands
    atom, n = cast(Atom, node.get("atom")), cast(int, node.get("n"))
    traits = ATOMS[atom]
    place, first = warp_products.register_of(context, state, scope, upper)
    _, second = warp_products.register_of(context, state, scope, lower)
    keeps = _keeps(context, state, scope, accumulate)
    a = _operand(context, state, scope, of_a, node.has("a_mn_major"), (traits.m, traits.k))
    b = _operand(context, state, scope, of_b, node.has("b_mn_major"), (n, traits.k))
    if a is None or b is None:
        return
    numbers, (rows, columns) = accumulator_elements(atom, n, (first, second))
    lane, group = context.every % WARPGROUP, context.every // WARPGROUP
    mine = _Elements(context, state, a), _Elements(context, state, b)
    for i, number in enumerate(numbers):
        value = warp_products.held(state, place, number) if keeps else data.ZERO
        left, right = (
            each.along_k(group, at[i][lane]) for each, at in zip(mine, (rows, columns), strict=True)
        )
        value = add_along_k(context, state, left, right, traits.k, value)
        state.registers[place.key, number] = value
    state.multiplying[place.key] = 0


def _keeps(context: WalkContext, state: WalkState, scope: WalkScope, accumulate: Expr) -> bool:
    """Whether products are added to the accumulators; if not, they replace them."""
    test = symbolic_values.truth(context, state, scope, accumulate)
    if isinstance(test, Truth) and isinstance(test.value, bool):
        return test.value
    for value, side in ((True, test), (False, conditions.negated(test))):
        if condition_queries.is_stated(state.path, side) or context.theory.holds(
            state.path, side, 1.0
        ):
            return value
    raise Unsupported("a multiplication that may keep its accumulators")


class _Elements:
    """The elements of an operand: ``cells`` of each warpgroup, by row and k."""

    def __init__(self, context: WalkContext, state: WalkState, operand: tuple[str, list[Ints]]):
        self.context, self.state = context, state
        self.name, cells = operand
        self.cells = np.array(cells)
        self._kept: dict[bytes, ElementsAlongK] = {}

    def along_k(self, group: Ints, row: Ints) -> ElementsAlongK:
        """What each thread multiplies."""
        key = row.tobytes()
        if key not in self._kept:
            cells, events = self.state.cells[self.name], self.context.events
            at, mask = self.cells[group, row].T, self.state.mask
            masks = None if mask is None else np.tile(mask, len(at))
            whole = shared_state.content(cells, events, at.reshape(-1), masks)
            first = first_of_run(self.context, whole, len(at), mask)

            @cache
            def each(k: int) -> Data:
                return shared_state.content(cells, events, at[k], mask)

            self._kept[key] = ElementsAlongK(each, first)
        return self._kept[key]


def _operand(
    context: WalkContext,
    state: WalkState,
    scope: WalkScope,
    operand: Expr,
    mn_major: bool,
    extents: tuple[int, int],
) -> tuple[str, list[Ints]] | None:
    """The array of an operand, and where its elements lie for each warpgroup, whose reads begin;
    None if it is outside."""
    name, step = descriptor_of(operand)
    matrix = scope.names[name]
    units = symbolic_values.form(context, state, scope, step).number()
    if not isinstance(matrix, MatrixPlace) or units is None:
        raise Unsupported(f"the descriptor {name}")
    array = shared_accesses.array_of(context, matrix.place.name)
    begin = shared_accesses.cells_of(context, state, matrix.place)
    if begin is None:
        return None
    size, count = BYTES[array.dtype], int(np.prod(array.sizes))
    line = matrix.swizzle or array.sizes[-1] * size
    strides = (ROWS * line, matrix.stride) if mn_major else (matrix.stride, UNIT)
    stride, leading = strides
    found: list[Ints] = []
    for group in range(context.threads // WARPGROUP):
        threads = np.arange(group * WARPGROUP, (group + 1) * WARPGROUP)
        at = np.broadcast_to(begin, context.threads)[threads]
        here = state.mask is None or bool(state.mask[threads[0]])
        if not here:
            found.append(np.zeros(extents, np.int64))
            continue
        apart = bool((at != at[0]).any())
        about = "threads of a warpgroup describe several matrices"
        context.check(state, "barriers", apart, about)
        if matrix.swizzle:
            wrong = int(at[0]) * size % (ROWS * matrix.swizzle) != 0
            about = f"a matrix begins at no multiple of {ROWS * matrix.swizzle} bytes"
            context.check(state, "alignment", wrong, about)
        where = (line, leading, stride, matrix.swizzle, mn_major)
        cells, _ = operand_places(int(at[0]), units * UNIT, size, array.aligned, where, extents)
        outside = bool((cells < 0).any() or (cells >= count).any())
        about = f"a matrix goes beyond the end of {array.name}"
        if not context.check(state, "shared bounds", outside, about):
            return None
        rank = int(context.rank[threads[0]])
        cells = shared_accesses.copy_of(context, array.name, cells, rank)
        _note_reads(context, state, array.name, cells.reshape(-1), threads)
        found.append(cells)
    return array.name, found


def _note_reads(
    context: WalkContext, state: WalkState, name: str, cells: Ints, threads: Ints
) -> None:
    """The warps of a warpgroup read elements from here on."""
    clocks, own = state.clocks, state.cells[name]
    assert clocks is not None and own.trace is not None
    context.ledger.count("races")
    for warp in np.unique(threads // WARP):
        flying, wrong, unseen = async_accesses.begin_read(clocks, own.trace, cells, int(warp))
        whys: tuple[tuple[Bools, str], ...] = (
            (flying, "multiplies it while a copy is in flight to it"),
            (wrong, "multiplies what the other writes"),
            (unseen, "multiplies it before a fence.proxy.async of who wrote it"),
        )
        for where, what in whys:
            if where.any():
                cell = int(cells[int(np.argmax(where))])
                by = int(own.writer_at[cell])
                conflict = shared_state.Conflict(
                    cell, int(warp) * WARP, shared_state.NONE, by, what
                )
                shown = shared_accesses.described(context, name, conflict)
                context.violated(state, "races", shown, int(warp) * WARP)
                return
    own.reader_at[cells] = context.statement()
