"""Warp roles: their loops over the tiles along k are walked together, trip by trip.

Each role is walked under the mask of its threads, with variables of its own.  A trip of the common
loop is a trip of each role's loop, in the order of the roles: what a role waits for, an earlier
role has begun in the same trip, or a later one in a trip before.  Where a role reads ahead, the
earlier ones are a trip ahead of it.  That is one order of events; the checks of ``mbarriers`` show
that it speaks for all.
"""

from __future__ import annotations

from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.prove import role_tiles
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.role_loops import RoleWalker, Run
from gemmgen.prove.state import WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext


def walk(
    context: WalkContext, node: WarpRoles[Node], state: WalkState, scope: WalkScope, run: Run
) -> list[WalkState]:
    """The states after all roles."""
    if state.mask is not None or state.clocks is None:
        raise Unsupported("warp roles of some threads, or without mbarriers")
    walker = RoleWalker(context, run)
    parts = [walker.part(role, scope) for role in node.roles]
    if any(walker.has_two_loops(role.body) for role in node.roles):
        states = [state]
        for part, role in zip(parts, node.roles, strict=True):
            states = walker.before(part, role, states)
        states = [after for each in states for after in role_tiles.walk(walker, parts, each)]
        for part in parts:
            states = walker.after(part, states)
        return states
    reads_ahead = any(walker.waits_before_its_loop(role.body) for role in node.roles[1:])
    parts[0].ahead = int(reads_ahead)
    states = walker.before(parts[0], node.roles[0], [state])
    states = walker.first_trips(parts[0], states)
    for part, role in zip(parts[1:], node.roles[1:], strict=True):
        states = walker.before(part, role, states)
    states = [after for each in states for after in walker.loop(parts, each)]
    for part in parts:
        states = walker.after(part, states)
    return states
