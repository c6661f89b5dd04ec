"""Where a kernel that overlaps with the preceding one waits for it: before its first access to
global memory, after what needs none."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from gemmgen.ir.control import Block
from gemmgen.ir.expr import Element
from gemmgen.ir.instruction import Instruction, instruction
from gemmgen.ir.names import WORKSPACE
from gemmgen.ir.thread_code import CountArrival, Invoke, Node, Point
from gemmgen.ir.traversal import inside, names_in
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.lower.context import Context

NOTE = "wait for the preceding kernel before any access to global memory"
_ACCESSES = (CountArrival, Point)


def waiting(context: Context, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body``, which every role of a block begins for itself, with the wait in it."""
    if not context.kernel.work.overlap:
        return body
    tensors = {tensor.name for tensor in context.tensors} | {WORKSPACE.name}
    origins = tuple(x for x in context.kernel.work.origins if x == "overlap_launch")
    return _waiting(body, tensors, Block(NOTE, origins, (instruction("wait_grid"),)))


def _waiting(body: tuple[Node, ...], tensors: set[str], wait: Node) -> tuple[Node, ...]:
    for at, node in enumerate(body):
        if isinstance(node, WarpRoles):
            roles = tuple(
                replace(role, body=_waiting(role.body, tensors, wait)) for role in node.roles
            )
            return (*body[:at], cast("Node", replace(node, roles=roles)), *body[at + 1 :])
        if _touches(node, tensors):
            return (*body[:at], wait, *body[at:])
    raise AssertionError("a kernel accesses global memory")


def _touches(node: Node, tensors: set[str]) -> bool:
    """A function that is called has its own names for the tensors that it is passed."""
    return any(
        isinstance(part, _ACCESSES)
        or (isinstance(part, Instruction) and part.row.touches_global)
        or (isinstance(part, Element) and part.buffer in tensors)
        or (isinstance(part, Invoke) and not tensors.isdisjoint(names_in(part.arguments)))
        for part in inside(node)
    )
