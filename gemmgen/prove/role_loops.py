"""The roles of a block's warps, and what walks their loops along k together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gemmgen.ir.control import Block, For, If
from gemmgen.ir.thread_code import Advance, Node, executes, inner
from gemmgen.ir.traversal import names_in
from gemmgen.ir.warp_roles import WarpRole
from gemmgen.numerics.operators import Bools
from gemmgen.prove import conditions, polynomials, symbolic_values
from gemmgen.prove.conditions import Condition, Truth
from gemmgen.prove.goals import Where
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.peeled_loops import PeeledLoop
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

Run = Callable[[WalkContext, Sequence[Node], list[WalkState], WalkScope], list[WalkState]]
Ending = tuple[Sequence[Node], WalkScope, "Bools | None", Where]
"""Statements after a loop, with their scope and threads."""
WAITS = "try_wait"


@dataclass
class WalkedRole:
    """One role: its threads, all of them if there is no mask, and its loop with the scope and the
    threads that run it.  ``after`` is what follows the loop, from the inside out.  ``ahead``: trips
    that it is ahead of the others."""

    scope: WalkScope
    mask: Bools | None
    where: Where
    loop: For[Node] | None = None
    after: list[Ending] = field(default_factory=list["Ending"])
    ahead: int = 0


class RoleWalker:
    """What walks the nodes of roles."""

    def __init__(self, context: WalkContext, run: Run):
        self.context, self.run = context, run
        self._constants = {constant.name for constant in context.kernel.constants}

    def is_loop(self, node: Node) -> bool:
        """Whether a node is a loop over tiles: its length depends on sizes."""
        return isinstance(node, For) and not names_in(node.stop) <= self._constants

    def has_loop(self, node: Node) -> bool:
        if isinstance(node, If) and node.rare:
            return False
        return self.is_loop(node) or any(map(self.has_loop, inner(node)))

    def loops_in(self, nodes: Sequence[Node]) -> list[For[Node]]:
        """The outermost loops over tiles."""
        found: list[For[Node]] = []
        for node in nodes:
            if isinstance(node, For) and self.is_loop(node):
                found.append(node)
            elif self.has_loop(node):
                found += self.loops_in(inner(node))
        return found

    def has_two_loops(self, nodes: Sequence[Node]) -> bool:
        """Whether a loop over tiles of C is around a loop over tiles along k."""
        return any(any(map(self.has_loop, loop.body)) for loop in self.loops_in(nodes))

    def waits_before_its_loop(self, body: Sequence[Node]) -> bool:
        """Whether a role waits for a tile before its loop."""
        for node in body:
            if self.has_loop(node):
                return not self.is_loop(node) and self.waits_before_its_loop(inner(node))
            if executes((node,), WAITS):
                return True
        return False

    def parts(self, role: WarpRole[Node], scope: WalkScope) -> list[WalkedRole]:
        """A role, or each of its groups as one."""
        own, found = self.context.every % self.context.block_threads, list[WalkedRole]()
        for group, (first, threads) in enumerate(role.parts):
            name = role.name if role.groups == 1 else f"{role.name} {group}"
            inner = WalkScope(dict(scope.names), scope.depth + 1, name, role.groups > 1)
            mask = (own >= first) & (own < first + threads)
            found.append(WalkedRole(inner, mask, Where(None, role.origins)))
        return found

    def _masked(
        self,
        nodes: Sequence[Node],
        states: list[WalkState],
        scope: WalkScope,
        mask: Bools | None,
        where: Where,
        given: tuple[Condition, ...] = (),
    ) -> list[WalkState]:
        """``nodes`` in the threads of ``mask``, in calls in which ``given`` holds."""
        outer, self.context.where = self.context.where, where
        found: list[WalkState] = []
        for state in states:
            here = state.branch()
            here.mask, here.guard = mask, (*state.guard, *given)
            here.path = (*state.path, *given)
            count = len(here.path)
            for out in self.run(self.context, nodes, [here], scope):
                out.mask, out.guard = state.mask, state.guard
                out.path = (*state.path, *out.path[count:])
                found.append(out)
        self.context.where = outer
        return found

    # ---- before and after the loop ----

    def before(
        self, part: WalkedRole, role: WarpRole[Node], states: list[WalkState]
    ) -> list[WalkState]:
        """What a role does before its loop, which is found."""
        return self.enter(part, role.body, states, part.scope, part.mask, part.where)

    def enter(
        self,
        part: WalkedRole,
        nodes: Sequence[Node],
        states: list[WalkState],
        scope: WalkScope,
        mask: Bools | None,
        where: Where,
    ) -> list[WalkState]:
        at = [i for i, node in enumerate(nodes) if self.has_loop(node)]
        if len(at) != 1:
            raise Unsupported("a role that has no loop over tiles, or several")
        (i,) = at
        states = self._masked(nodes[:i], states, scope, mask, where)
        part.after.insert(0, (nodes[i + 1 :], scope, mask, where))
        match nodes[i]:
            case For() as loop if self.is_loop(loop):
                part.loop, part.scope, part.mask, part.where = loop, scope, mask, where
                return states
            case Block() as block:
                own = scope.inner() if block.scoped else scope
                origin = Where(None, block.origins or where.origins)
                return self.enter(part, block.body, states, own, mask, origin)
            case If() as branch if not branch.otherwise:
                (test,) = {self._threads(branch, state, scope, mask) for state in states[:1]}
                own = np.frombuffer(test, np.bool_)
                return self.enter(part, branch.body, states, scope.inner(), own, where)
            case _:
                raise Unsupported("a role's loop over tiles in another statement")

    def _threads(
        self, node: If[Node], state: WalkState, scope: WalkScope, mask: Bools | None
    ) -> bytes:
        """The threads of ``mask`` that take a branch."""
        here = state.branch()
        here.mask = mask
        test = symbolic_values.truth(self.context, here, scope, node.condition)
        if not isinstance(test, Truth):
            raise Unsupported("a role's loop over tiles under a condition on sizes")
        own = np.ones(self.context.threads, np.bool_) if mask is None else mask
        return np.asarray(own & test.value, np.bool_).tobytes()

    def after(self, part: WalkedRole, states: list[WalkState]) -> list[WalkState]:
        for nodes, scope, mask, where in part.after:
            if part.ahead and not all(isinstance(node, Advance) for node in _statements(nodes)):
                raise Unsupported("what a role that is ahead does after its loop")
            states = self._masked(nodes, states, scope, mask, where)
        return states

    # ---- the loop ----

    def trip(
        self,
        part: WalkedRole,
        states: list[WalkState],
        at: Polynomial,
        given: tuple[Condition, ...] = (),
    ) -> list[WalkState]:
        """A trip of one role's loop, whose variable is ``at``."""
        assert part.loop is not None
        scope = part.scope.inner()
        scope.names[part.loop.variable] = at
        return self._masked(part.loop.body, states, scope, part.mask, part.where, given)

    def bounds(self, part: WalkedRole, state: WalkState) -> tuple[Polynomial, Polynomial, int]:
        assert part.loop is not None
        node = part.loop
        start, stop, step = (
            symbolic_values.form(self.context, state, part.scope, each)
            for each in (node.start, node.stop, node.step)
        )
        by = step.number()
        if by is None or not (start.uniform and stop.uniform):
            raise Unsupported("a role's loop over tiles by a step that depends on sizes")
        return start, stop, by

    def first_trips(self, part: WalkedRole, states: list[WalkState]) -> list[WalkState]:
        """Those of the first role that are before the common loop."""
        for number in range(part.ahead):
            after: list[WalkState] = []
            for state in states:
                start, stop, by = self.bounds(part, state)
                at = polynomials.add(start, polynomials.fixed(number * by))
                goes_on = conditions.less(at, stop)
                if isinstance(goes_on, Truth):
                    after += self.trip(part, [state], at) if goes_on.value is True else [state]
                else:
                    after += self.trip(part, [state], at, (goes_on,))
            states = after
        return states

    def loop(self, parts: list[WalkedRole], state: WalkState) -> list[WalkState]:
        """The common loop."""
        start, stop, by = self.bounds(parts[0], state)
        for part in parts[1:]:
            own, other, step = self.bounds(part, state)
            same = polynomials.same(own, start) and polynomials.same(other, stop) and step == by
            if not same:
                raise Unsupported("roles with different loops over tiles")
        distance = polynomials.subtract(stop, start).number()
        if distance is None:
            return CommonLoop(self, parts, start, stop, by).run(state)
        trips, states = max(0, -(-distance // by)), [state]
        for number in range(trips):
            for part in parts:
                if number + part.ahead < trips:
                    at = polynomials.add(start, polynomials.fixed((number + part.ahead) * by))
                    states = self.trip(part, states, at)
        return states


def _statements(nodes: Sequence[Node]) -> list[Node]:
    """Those that ``nodes`` are made of, without blocks."""
    found: list[Node] = []
    for node in nodes:
        found += _statements(node.body) if isinstance(node, Block) else [node]
    return found


class CommonLoop(PeeledLoop):
    """The loops of all roles, of unknown length."""

    def __init__(
        self,
        walker: RoleWalker,
        parts: list[WalkedRole],
        start: Polynomial,
        stop: Polynomial,
        by: int,
    ):
        node = parts[-1].loop
        assert node is not None
        scope = WalkScope({}, 1 << 30)
        super().__init__(walker.context, node, scope, lambda states, _: states, start, stop, by)
        self.walker, self.parts = walker, parts

    def once(self, head: WalkState, trip: Polynomial) -> list[WalkState]:
        state = head.copy()
        state.path, state.left = (*state.path, self.goes_on(trip)), False
        states = [state]
        for part in self.parts:
            own = polynomials.add(trip, polynomials.fixed(part.ahead))
            given = (self.goes_on(own),) if part.ahead else ()
            states = self.walker.trip(part, states, self.at(own), given)
        return states
