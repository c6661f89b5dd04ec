"""Warp roles: their loops over the tiles along k are walked together, trip by trip.

Each role is walked under the mask of its threads, with variables of its own.  A trip of the common
loop is a trip of each role's loop, in the order of the roles: what a role waits for, an earlier
role has begun in the same trip, or a later one in a trip before.  Where a role reads ahead, the
earlier ones are a trip ahead of it.  That is one order of events; the checks of ``mbarriers`` show
that it speaks for all.
"""

from __future__ import annotations

from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_roles import WarpRole, WarpRoles
from gemmgen.prove import ping_pong, role_tiles
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.role_loops import RoleWalker, Run, WalkedRole
from gemmgen.prove.state import WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext


def walk(
    context: WalkContext, node: WarpRoles[Node], state: WalkState, scope: WalkScope, run: Run
) -> list[WalkState]:
    """The states after all roles."""
    if state.mask is not None or state.clocks is None:
        raise Unsupported("warp roles of some threads, or without mbarriers")
    walker = RoleWalker(context, run)
    parts = [(role, part) for role in node.roles for part in walker.parts(role, scope)]
    if any(walker.has_two_loops(role.body) for role in node.roles):
        alternate = any(role.groups > 1 for role in node.roles)
        over_tiles = ping_pong.walk if alternate else role_tiles.walk
        if alternate:
            ping_pong.limit_blocks(context)
        states = [state]
        for role, part in parts:
            states = walker.before(part, role, states)
        walked = [part for _, part in parts]
        states = [after for each in states for after in over_tiles(walker, walked, each)]
        for part in walked:
            states = walker.after(part, states)
        return states
    if len(parts) != len(node.roles):
        raise Unsupported("consumers that alternate in blocks of one tile")
    return _of_one_tile(walker, parts, state)


def _of_one_tile(
    walker: RoleWalker, parts: list[tuple[WarpRole[Node], WalkedRole]], state: WalkState
) -> list[WalkState]:
    """The states after roles that have one loop over tiles along k."""
    (producer, first), *others = parts
    reads_ahead = any(walker.waits_before_its_loop(role.body) for role, _ in others)
    first.ahead = int(reads_ahead)
    states = walker.before(first, producer, [state])
    states = walker.first_trips(first, states)
    for role, part in others:
        states = walker.before(part, role, states)
    walked = [part for _, part in parts]
    states = [after for each in states for after in walker.loop(walked, each)]
    for part in walked:
        states = walker.after(part, states)
    return states
