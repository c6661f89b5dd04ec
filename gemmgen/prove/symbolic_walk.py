"""The walk over a thread's statements, for all threads of a block at once.

Over 300 lines: a case for each kind of statement, with what they have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np

from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lane_matrices import OperandArray, SplitMatrices
from gemmgen.ir.simplify import conjuncts
from gemmgen.ir.thread_code import (
    Advance,
    CountArrival,
    Invoke,
    Leave,
    Move,
    Node,
    Parameter,
    Point,
    RegisterArray,
    contains,
    executes,
)
from gemmgen.ir.traversal import inside
from gemmgen.ir.warp_matrices import (
    FragmentArray,
    LoadFragment,
    MultiplyFragments,
    StoreFragment,
)
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.ir.warpgroup_matrices import DescribeMatrix
from gemmgen.prove import (
    clusters,
    condition_queries,
    conditions,
    data,
    element_accesses,
    instructions,
    integers,
    lane_matrices,
    loops,
    polynomials,
    ring_tiles,
    shared_accesses,
    split_parts,
    symbolic_values,
    warp_products,
    warp_roles,
    warpgroup_products,
    wmma_fragments,
)
from gemmgen.prove.conditions import Condition, Flag, Truth
from gemmgen.prove.data import Data, Kept, UnknownData
from gemmgen.prove.goals import Where
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.peeled_loops import PeeledLoop, differs_by_trip
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import (
    GlobalPlace,
    RegisterPlace,
    SharedPlace,
    Value,
    VariableSlot,
    WalkScope,
    WalkState,
    Write,
    is_integer,
    under,
)
from gemmgen.prove.walk_context import WalkContext

WITH_BODIES = (Block, For, If, Invoke, WarpRoles)
NOT_FINITE = Flag("acc != finite")
"""That an accumulator is Inf or NaN: a rare path computes it again."""
ORDERING = (
    "sync_block",
    "sync_cluster",
    "sync_warp",
    "sync_warps",
    "commit_group",
    "wait_group",
    "copy_async",
    "try_wait",
)


def run(
    context: WalkContext, body: Sequence[Node], states: list[WalkState], scope: WalkScope
) -> list[WalkState]:
    """``body`` from each of ``states``; those that leave a loop are kept as they are.
    Raises ``OutOfTime``."""
    first = states[0].path if len(states) == 1 else None
    for node in body:
        context.theory.questions.left()
        after, loops_before = list[WalkState](), len(context.periods)
        for state in states:
            if state.waiting is not None:
                clusters.check_waiting(context, state)
            after += [state] if state.broken else step(context, node, state, scope)
        states = after
        looped = len(context.periods) > loops_before and context.partials is not None
        if looped and first is not None:
            states = split_parts.joined(context, states, first)
    return states


def step(context: WalkContext, node: Node, state: WalkState, scope: WalkScope) -> list[WalkState]:
    if not isinstance(node, WITH_BODIES):
        context.where = Where(node, context.where.origins)
    match node:
        case Assign(target, value):  # the most frequent ones come first
            _assign(
                context, state, scope, target, symbolic_values.value(context, state, scope, value)
            )
        case Block():
            return _block(context, node, state, scope)
        case For():
            body = partial(run, context, node.body)
            is_peeled = state.clocks is not None or differs_by_trip(node)
            kind = PeeledLoop if is_peeled else loops.TripLoop
            if state.clocks is not None and ring_tiles.covers(context, node, state, scope):
                return ring_tiles.walk(context, node, state, scope, run)
            return loops.loop(context, node, state, scope, body, kind)
        case If():
            return _if(context, node, state, scope)
        case WarpRoles():
            return warp_roles.walk(context, node, state, scope, run)
        case Break(condition):
            return _break(context, condition, state, scope)
        case Invoke():
            return _invoke(context, node, state, scope)
        case Leave(condition):
            test = symbolic_values.truth(context, state, scope, condition)
            if context.ranks > 1 and test is not conditions.NO:
                raise Unsupported("a return in a block of a cluster")
            return [_assumed(state, conditions.negated(test))]
        case Define(name, value, kind, _):
            found = symbolic_values.value(context, state, scope, value)
            if kind in ("float", "double", "i32"):
                found = symbolic_values.as_data(found)
            _define(context, state, scope, name, found)
        case AdvanceRing():
            for one in node.assignments:
                found = symbolic_values.value(context, state, scope, one.value)
                _assign(context, state, scope, one.target, found)
        case Move(target, source, width, _):
            place = symbolic_values.located(context, state, scope, source)
            values = element_accesses.load(context, state, place, width)
            element_accesses.save(
                context, state, symbolic_values.located(context, state, scope, target), values
            )
        case RegisterArray():
            _registers(state, scope, node)
        case Point(name, source, _):
            scope.names[name] = symbolic_values.located(context, state, scope, source)
        case Advance(tensor, by, back):
            moved = scope.names[tensor]
            offset = symbolic_values.form(context, state, scope, by)
            if not isinstance(moved, GlobalPlace):
                raise Unsupported(f"a moved pointer {tensor}")
            offset = polynomials.scale(offset, -1) if back else offset
            scope.names[tensor] = GlobalPlace(moved.param, polynomials.add(moved.offset, offset))
        case OperandArray() | FragmentArray():
            warp_products.registers(state, scope, node)
        case SplitMatrices():
            lane_matrices.split(context, node, state, scope)
        case LoadFragment():
            wmma_fragments.load(context, node, state, scope)
        case MultiplyFragments():
            wmma_fragments.multiply(context, node, state, scope)
        case StoreFragment():
            wmma_fragments.store(context, node, state, scope)
        case DescribeMatrix():
            warpgroup_products.describe(context, node, state, scope)
        case CountArrival():
            return split_parts.count(context, node, state, scope)
        case BarrierArray():
            assert state.barriers is not None
            state.barriers.declare(node)
        case Instruction():
            instructions.execute(context, node, state, scope)
        case _:
            raise Unsupported(f"the statement {type(node).__name__}")
    return [state]


def _block(
    context: WalkContext, node: Block[Node], state: WalkState, scope: WalkScope
) -> list[WalkState]:
    outer = context.where
    context.where = Where(None, node.origins or outer.origins)
    found = run(context, node.body, [state], scope.inner() if node.scoped else scope)
    context.where = outer
    return found


def _assumed(state: WalkState, test: Condition) -> WalkState:
    """``state`` in the threads where a condition holds."""
    if isinstance(test, Truth):
        if isinstance(test.value, bool):
            if not test.value:
                raise Unsupported("a return of all threads")
            return state
        state.mask = (
            test.value if state.mask is None else cast("np.ndarray", state.mask & test.value)
        )
    else:
        state.path = (*state.path, test)
    return state


# ---- conditions ----


def _if(
    context: WalkContext, node: If[Node], state: WalkState, scope: WalkScope
) -> list[WalkState]:
    test = _test(context, node, state, scope)
    if state.clocks is not None:
        test = condition_queries.decided(state.path, test)
    if isinstance(test, Truth) and isinstance(test.value, bool):
        return run(context, node.body if test.value else node.otherwise, [state], scope.inner())
    bodies = (node.body, node.otherwise)
    ordered = any(
        executes(b, *ORDERING) or contains(b, Leave) or contains(b, Break) for b in bodies
    )
    if ordered and condition_queries.is_uniform(test):
        for side, body in ((test, node.body), (conditions.negated(test), node.otherwise)):
            is_so = condition_queries.is_stated(state.path, side)
            if is_so or (state.clocks is not None and context.theory.holds(state.path, side, 1.0)):
                return run(context, body, [state], scope.inner())
        yes, no = state, state.copy()
        yes.path, no.path = (*yes.path, test), (*no.path, conditions.negated(test))
        return [
            *run(context, node.body, [yes], scope.inner()),
            *run(context, node.otherwise, [no], scope.inner()),
        ]
    ends: list[WalkState] = []
    for side, body in ((test, node.body), (conditions.negated(test), node.otherwise)):
        inner = under(state, side)
        inner.guard = (*state.guard, *inner.path[len(state.path) :])
        if state.pending is not None or not isinstance(test, Truth):
            inner.pending = []
        found = run(context, body, [inner], scope.inner())
        if len(found) != 1:
            raise Unsupported("a loop of unknown length under a condition of each thread")
        if node.rare and _keeps_variables(body):
            found[0].slots.update(state.slots)
        ends += found
    _merge(context, state, test, *ends)
    return [state]


def _test(context: WalkContext, node: If[Node], state: WalkState, scope: WalkScope) -> Condition:
    """The condition of a branch; of a rare one, what it asks of accumulators may be so or not."""
    if not node.rare:
        return symbolic_values.truth(context, state, scope, node.condition)
    found: list[Condition] = []
    for part in conjuncts(node.condition):
        own = symbolic_values.value(context, state, scope, part)
        found.append(own if isinstance(own, symbolic_values.CONDITIONS) else NOT_FINITE)
    return conditions.all_of(*found)


def _keeps_variables(body: Sequence[Node]) -> bool:
    """Whether no statement assigns a variable: then each is after a loop what it was before."""
    parts = inside(tuple(body))
    assigned = [part.target for part in parts if isinstance(part, Assign)]
    return all(isinstance(each, Element) for each in assigned) and not any(
        isinstance(part, AdvanceRing | Instruction) for part in parts
    )


def _merge(
    context: WalkContext, state: WalkState, test: Condition, yes: WalkState, no: WalkState
) -> None:
    """The registers, variables and stores of two branches."""
    if yes.waiting is not state.waiting or no.waiting is not state.waiting:
        raise Unsupported("a barrier under a condition of each thread")
    for key in state.slots:
        one, two = yes.slots[key], no.slots[key]
        if one is not two:
            state.slots[key] = _either(context, test, one, two)
    for key in {**yes.registers, **no.registers}:
        one = yes.registers.get(key, UnknownData("a register that was never set"))
        two = no.registers.get(key, UnknownData("a register that was never set"))
        state.registers[key] = one if one is two else data.pick(test, one, two)
    for write in _merged_writes(test, yes.pending or [], no.pending or []):
        if state.pending is None:
            shared_accesses.finish(context, state, write)
        else:
            state.pending.append(write)


def _either(context: WalkContext, test: Condition, one: Value, two: Value) -> Value:
    if is_integer(one) and is_integer(two):
        return integers.choose(
            context.theory, test, cast(integers.Integer, one), cast(integers.Integer, two)
        )
    return data.pick(test, symbolic_values.as_data(one), symbolic_values.as_data(two))


def _merged_writes(test: Condition, yes: list[Write], no: list[Write]) -> list[Write]:
    found: dict[object, Write] = {}
    for taken, writes in ((True, yes), (False, no)):
        for write in writes:
            mask = b"" if write.mask is None else write.mask.tobytes()
            key = (write.name, write.at.tobytes(), mask)
            other: Data = found[key].value if key in found else Kept()
            value = data.pick(test, write.value, other) if taken else _kept_if(test, write, other)
            found[key] = Write(write.name, write.at, value, write.mask, write.where)
    return [*found.values()]


def _kept_if(test: Condition, write: Write, other: Data) -> Data:
    """``other`` is what the first branch left: its value where ``test`` holds."""
    if isinstance(other, data.Pick) and isinstance(other.no, Kept):
        return data.pick(other.condition, other.yes, write.value)
    return data.pick(test, other, write.value)


# ---- variables ----


def _define(
    context: WalkContext, state: WalkState, scope: WalkScope, name: str, value: Value
) -> None:
    if isinstance(value, Polynomial):
        value = _of_role(state, value) if scope.own else value
        value = integers.named(context.theory, value, name)
    key = scope.key(name)
    state.slots[key] = value
    scope.names[name] = VariableSlot(key)


def _of_role(state: WalkState, value: Polynomial) -> Polynomial:
    """A number that all threads here share, in place of other ones in threads of other roles."""
    if state.mask is None or not value.concrete or value.uniform:
        return value
    own = data.numbers(value.constant, state.mask.size)[state.mask]
    return polynomials.fixed(int(own[0])) if (own == own[0]).all() else value


def _assign(
    context: WalkContext, state: WalkState, scope: WalkScope, target: Element | str, value: Value
) -> None:
    if isinstance(target, str):
        slot = scope.names[target]
        if not isinstance(slot, VariableSlot):
            raise Unsupported(f"an assignment to {target}")
        state.slots[slot.key] = value
        return
    place = symbolic_values.located(context, state, scope, target)
    element_accesses.save(context, state, place, [symbolic_values.as_data(value)])


def _registers(state: WalkState, scope: WalkScope, node: RegisterArray) -> None:
    key = scope.key(node.name)
    scope.names[node.name] = RegisterPlace(key, node.sizes)
    fresh = data.ZERO if node.zero else UnknownData("a register that was never set", certain=True)
    for i in range(int(np.prod(node.sizes))):
        state.registers[key, i] = fresh


# ---- calls ----


def _invoke(
    context: WalkContext, node: Invoke, state: WalkState, scope: WalkScope
) -> list[WalkState]:
    inner = WalkScope(context.scope().names, scope.depth + 1, scope.role, scope.own)
    for parameter, argument in zip(node.function.parameters, node.arguments, strict=True):
        if parameter.dtype is None:
            value = symbolic_values.value(context, state, scope, argument)
            inner.names[parameter.name] = value
        else:
            inner.names[parameter.name] = _reference(context, state, scope, parameter, argument)
    outer = context.where
    context.where = Where(None, node.function.origins or outer.origins)
    found = run(context, node.function.body, [state], inner)
    context.where = outer
    for name in node.function.results:
        slot, key = inner.names[name], scope.key(name)
        if not isinstance(slot, VariableSlot):
            raise Unsupported(f"a result {name} that is no variable")
        for each in found:
            each.slots[key] = each.slots[slot.key]
        scope.names[name] = VariableSlot(key)
    return found


def _reference(
    context: WalkContext, state: WalkState, scope: WalkScope, parameter: Parameter, argument: object
) -> GlobalPlace | SharedPlace | RegisterPlace:
    if isinstance(argument, Element):
        place = symbolic_values.located(context, state, scope, argument)
    elif isinstance(argument, Var):
        place = symbolic_values.binding(scope, argument.name)
    else:
        raise Unsupported("an argument that is neither a name nor an element")
    if parameter.shape and isinstance(place, SharedPlace):
        return SharedPlace(place.name, place.first)
    if parameter.shape and isinstance(place, RegisterPlace):
        return RegisterPlace(place.key, place.sizes, place.first)
    assert isinstance(place, GlobalPlace | SharedPlace | RegisterPlace)
    return place


def _break(
    context: WalkContext, condition: Expr, state: WalkState, scope: WalkScope
) -> list[WalkState]:
    test = symbolic_values.truth(context, state, scope, condition)
    if isinstance(test, Truth):
        if not isinstance(test.value, bool):
            raise Unsupported("a break of some threads")
        state.broken = test.value
        state.left = state.left or test.value
        return [state]
    if not condition_queries.is_uniform(test):
        raise Unsupported("a break of some threads")
    if condition_queries.is_stated(state.path, conditions.negated(test)):
        return [state]
    gone = state.copy()
    gone.broken = gone.left = True
    gone.path = (*gone.path, test)
    state.path = (*state.path, conditions.negated(test))
    return [gone, state]
