"""Control flow: which threads take part in which statements, and how often."""

from __future__ import annotations

import numpy as np

from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.scope import UNKNOWN
from gemmgen.interpreter.simt import Mask, narrowed, where
from gemmgen.ir.control import Block, Break, For, If
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.thread_code import Leave, Node
from gemmgen.numerics.operators import ARITHMETIC, COMPARE, Value, invert

less, plus, times = COMPARE["<"], ARITHMETIC["+"], ARITHMETIC["*"]


def _block(node: Block[Node], code: Code) -> Step | None:
    body = code.braces(node.body) if node.scoped else code.sequence(node.body)
    return None if body is None else code.machine.within(node, body)


def _for(node: For[Node], code: Code) -> Step | None:
    start, stop, by = (code.expression(e).run for e in (node.start, node.stop, node.step))
    trips = code.machine.trips(node, code.scope)
    code.scope.enter()
    number = code.scope.variable(node.variable, "int").number
    body = code.braces(node.body)
    code.scope.leave()
    if body is None:
        return None
    frame = code.scope.frame

    def step(mask: Mask) -> None:
        first, stride = uniform(start(mask)), uniform(by(mask))

        def trip(i: int) -> bool:
            at = plus(first, times(i, stride))
            going, active = where(less(at, stop(mask)), mask)
            if going and code.alive is not None:
                going, active = where(code.alive, active)
            if going:
                frame[number] = at
                body(active)
            return going

        trips(trip, first, uniform(stop(mask)), stride, mask)

    def until_broken(mask: Mask) -> None:
        """Threads that leave the loop wait until all are done with it."""
        alive = code.alive
        step(mask)
        code.alive = alive

    return until_broken if any(isinstance(inner, Break) for inner in node.body) else step


def uniform(value: Value) -> Value:
    """An int for numbers that are the same in all lanes."""
    if isinstance(value, np.ndarray) and (value == value[0]).all():
        return int(value[0])
    return value


def _if(node: If[Node], code: Code) -> Step | None:
    """On a condition that is ``UNKNOWN``, both sides are run, but not what rarely happens."""
    condition = code.expression(node.condition)
    body, otherwise = code.braces(node.body), code.braces(node.otherwise)
    if body is None and otherwise is None:
        return condition.accesses

    def step(mask: Mask) -> None:
        some, others = not node.rare, True
        on = off = mask
        holds = condition.run(mask)
        if holds is not UNKNOWN:
            some, on = where(holds, mask)
            others, off = where(invert(holds), mask)
        if some and body is not None:
            body(on)
        if others and otherwise is not None:
            otherwise(off)

    return step


def _leave(node: Leave | Break, code: Code) -> Step:
    condition = code.expression(node.condition)
    assert condition.known is not UNKNOWN, "who leaves is computed"

    def step(mask: Mask) -> None:
        stays = code.machine.lanes.every(invert(condition.run(mask))).astype(np.bool_)
        if mask is not None:
            stays = stays | ~mask
        code.alive = narrowed(code.alive, stays)

    return step


def _barrier(node: Instruction, code: Code) -> Step:
    return code.machine.barrier


def _cluster_barrier(node: Instruction, code: Code) -> Step:
    return code.machine.meet_cluster


NODES: Statements = {
    Block: _block,
    For: _for,
    If: _if,
    Leave: _leave,
    Break: _leave,
    "sync_block": _barrier,
    "sync_cluster": _cluster_barrier,
}
