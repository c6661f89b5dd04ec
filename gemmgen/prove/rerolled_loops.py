"""Loops that ``unroll tile_k=4`` makes, as loops of one tile a trip.

    for (round = start; round < stop; round += U * B)
        for (turn = 0; turn < U; ++turn) {
            tile = round + turn * B;
            if (tile >= stop) break;
            ...
        }

executes the same statements in the same order as

    turn = 0;
    for (tile = start; tile < stop; tile += B) { ...; turn = turn == U - 1 ? 0 : turn + 1; }

since a round that ends early has reached ``stop``, and so has the next one's first tile.  What
only the first form computes is the first index of each round: that the one after the last round
does not overflow is kept as an expression before the loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gemmgen.ir.control import Assign, Block, Break, Define, For, If
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.thread_code import Node
from gemmgen.ir.traversal import inside, names_in
from gemmgen.ir.warp_roles import WarpRoles

FIRST = Int(0)


def rerolled(kernel: LoweredKernel) -> LoweredKernel:
    """``kernel`` with a trip for each tile in place of one for each round of tiles."""
    values = {one.name: one.value for one in kernel.constants}
    return replace(kernel, body=_nodes(kernel.body, values))


def _nodes(nodes: tuple[Node, ...], values: Mapping[str, int]) -> tuple[Node, ...]:
    found = tuple(_node(node, values) for node in nodes)
    return nodes if all(x is y for x, y in zip(found, nodes, strict=True)) else found


def _node(node: Node, values: Mapping[str, int]) -> Node:
    match node:
        case For(body=(For() as tiles,)) if (found := _of_tiles(node, tiles, values)) is not None:
            return found
        case For() | Block():
            body = _nodes(node.body, values)
            return node if body is node.body else replace(node, body=body)
        case If():
            body, otherwise = _nodes(node.body, values), _nodes(node.otherwise, values)
            same = body is node.body and otherwise is node.otherwise
            return node if same else replace(node, body=body, otherwise=otherwise)
        case WarpRoles():
            bodies = [_nodes(role.body, values) for role in node.roles]
            if all(one is role.body for one, role in zip(bodies, node.roles, strict=True)):
                return node
            pairs = zip(node.roles, bodies, strict=True)
            return replace(node, roles=tuple(replace(role, body=body) for role, body in pairs))
        case _:
            return node


def _of_tiles(rounds: For[Node], tiles: For[Node], values: Mapping[str, int]) -> Node | None:
    """The loop over single tiles; None if these are not loops over rounds and their tiles."""
    if not (isinstance(rounds.step, Binary) and rounds.step.op == "*"):
        return None
    count, step, turn = rounds.step.left, rounds.step.right, Var(tiles.variable)
    if (tiles.start, tiles.stop, tiles.step) != (FIRST, count, Int(1)) or len(tiles.body) < 2:
        return None
    named, ends, *rest = tiles.body
    if not isinstance(named, Define) or named.mutable or named.kind != "int":
        return None
    tile = Var(named.name)
    is_tile = named.value == Var(rounds.variable) + turn * step
    if not is_tile or ends != Break(Binary(">=", tile, rounds.stop)):
        return None
    if _breaks(rest) or rounds.variable in names_in(tuple(rest)):
        return None
    length = _length(turn, count, rest, values)
    if length is None:
        return None
    after = Define(f"{rounds.variable}_after", rounds.stop - 1 + rounds.step)
    body = (*_nodes(tuple(rest), values), *_next(turn, length))
    counter = (Define(turn.name, FIRST, mutable=True),) if length > 1 else ()
    loop = For(tile.name, rounds.start, rounds.stop, step, body)
    return Block("", (), (after, *counter, loop), scoped=True)


def _breaks(nodes: list[Node] | tuple[Node, ...]) -> bool:
    """Whether these statements of a loop's body may leave the loop."""
    for node in nodes:
        match node:
            case Break():
                return True
            case Block():
                if _breaks(node.body):
                    return True
            case If():
                if _breaks(node.body) or _breaks(node.otherwise):
                    return True
            case WarpRoles():
                if any(_breaks(role.body) for role in node.roles):
                    return True
            case _:
                pass
    return False


def _length(turn: Var, count: Expr, body: list[Node], values: Mapping[str, int]) -> int | None:
    """The period of what ``body`` computes with ``turn``: ``count``, or less if it takes nothing
    but its remainders, which then are the same; None if that is not known."""
    turns = _number(count, values)
    if turns is None or turns < 1:
        return None
    used = sum(part == turn for part in inside(tuple(body)))
    divisors = [
        _number(part.right, values)
        for part in inside(tuple(body))
        if isinstance(part, Binary) and part.op == "%" and part.left == turn
    ]
    if len(divisors) < used:
        return turns
    length = 1
    for divisor in divisors:
        if divisor is None or divisor < 1:
            return turns
        length = math.lcm(length, divisor)
    return length if turns % length == 0 else turns


def _number(expr: Expr, values: Mapping[str, int]) -> int | None:
    match expr:
        case Int(value):
            return value
        case Var(name):
            return values.get(name)
        case _:
            return None


def _next(turn: Var, length: int) -> tuple[Node, ...]:
    if length == 1:
        return ()
    last = Binary("==", turn, Int(length - 1))
    return (Assign(turn.name, Select(last, FIRST, turn + 1)),)
