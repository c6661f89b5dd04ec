"""Warp roles, interpreted.

Each has its own machine (``scheduler``), whose lanes are its threads.  On a machine whose lanes
are whole blocks one role comes after another.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.scope import Closure
from gemmgen.interpreter.simt import Mask, Trap
from gemmgen.ir.control import Block
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.thread_code import Node, inner
from gemmgen.ir.warp_roles import WarpRole, WarpRoles
from gemmgen.numerics.operators import Bools, Value


def roles_of(body: tuple[Node, ...]) -> tuple[WarpRole[Node], ...]:
    """The roles into which the threads of a block part, if they do."""
    for node in body:
        found = node.roles if isinstance(node, WarpRoles) else roles_of(inner(node))
        if found:
            return found
    return ()


def _roles(node: WarpRoles[Node], code: Code) -> Step:
    parts = [(role, *_compiled(role, code)) for role in node.roles]
    lanes = code.machine.lanes

    def step(mask: Mask) -> None:
        every = np.ones(lanes.count, np.bool_) if mask is None else mask
        left = every
        for role, condition, body in parts:
            here = left
            if condition is not None:
                here = left & lanes.every(condition.run(left)).astype(np.bool_)
            left = left & ~here
            _check_own(role, here, every, code)
            if body is not None and here.any():
                body(None if here.all() else here)

    return step


def _compiled(role: WarpRole[Node], code: Code) -> tuple[Closure | None, Step | None]:
    """Its condition, and its body on the machines that run it."""
    condition = None if role.condition is None else code.expression(role.condition)
    if code.machine.role not in (None, role.name):
        return condition, None
    return condition, code.braces((Block(role.note, role.origins, role.body),))


def _check_own(role: WarpRole[Node], here: Bools, every: Bools, code: Code) -> None:
    """All threads of a role's machine go its way, and no others."""
    machine = code.machine
    if machine.role is None:
        return
    wrong = every & ~here if machine.role == role.name else here
    if wrong.any():
        thread = machine.lanes.name(int(np.argmax(wrong)))
        went = f"is of the role {machine.role}, and goes the way of another"
        raise Trap("roles", thread, 0, went)


def _meet(node: Instruction, code: Code) -> Step:
    at, count = (code.expression(operand) for operand in node.operands[:2])
    machine, threads, number = code.machine, cast(int, count.known), at.run
    return lambda mask: machine.sync(_one(number(mask), mask, code), threads, mask)


def _meet_or(node: Instruction, code: Code) -> Step:
    """All who meet are threads of this machine."""
    meet, machine = _meet(node, code), code.machine
    run = code.expression(node.operands[2]).run
    assert node.result is not None
    frame, number = code.scope.frame, code.scope.variable(node.result, "bool").number

    def step(mask: Mask) -> None:
        lanes = machine.lanes
        own = lanes.every(run(mask)).astype(np.bool_)
        given = own if mask is None else own & mask
        meet(mask)
        any_of_block = given.reshape(lanes.blocks, -1).any(axis=1)
        frame[number] = np.repeat(any_of_block, lanes.threads)

    return step


def _one(value: Value, mask: Mask, code: Code) -> int:
    """A number that all threads have which take part."""
    every = code.machine.lanes.every(value)
    found = every if mask is None else every[mask]
    if (found != found[0]).any():
        raise Trap("barrier", code.machine.lanes.name(0), int(found[0]), "and others elsewhere")
    return int(found[0])


NODES: Statements = {WarpRoles: _roles, "sync_warps": _meet, "sync_warps_or": _meet_or}
