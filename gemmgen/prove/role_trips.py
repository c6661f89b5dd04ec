"""What roles of a block of several tiles do for one tile, walked part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gemmgen.ir.control import Define, For
from gemmgen.ir.thread_code import Node, inner
from gemmgen.ir.traversal import names_in
from gemmgen.prove import conditions, equal_orders, polynomials, role_scopes, symbolic_values
from gemmgen.prove.conditions import Condition
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.mbarriers import ALWAYS
from gemmgen.prove.own_tiles import TileBounds
from gemmgen.prove.peeled_loops import remainder_period, resolve
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.role_loops import CommonLoop, Ending, RoleWalker, WalkedRole
from gemmgen.prove.state import WalkScope, WalkState

REMAINDER = "remainder of the next trip@@0"
"""A variable of each state: the number of the next trip along k modulo the ``period`` of what the
loop's conditions ask of it."""


def settle(state: WalkState, outer: WalkState) -> None:
    """Leaves the variables that ``outer`` has, what the path decides, and epochs by their order."""
    state.slots = {key: value for key, value in state.slots.items() if key in outer.slots}
    state.registers = {
        key: value for key, value in state.registers.items() if key in outer.registers
    }
    resolve(state, state.path)
    assert state.barriers is not None
    state.barriers.tests.clear()
    if any(guard != ALWAYS for guard in state.barriers.guards):
        raise Unsupported("an mbarrier whose phase depends on sizes when a trip ends")
    equal_orders.normalize(state)


def _before(nodes: Sequence[Node], last: Node) -> list[Define]:
    """The variables that are defined before a statement, which is in one of the last ``nodes``."""
    found: list[Define] = []
    for node in nodes:
        if node is last:
            break
        if isinstance(node, Define):
            found.append(node)
        found += _before(inner(node), last)
    return found


class TileTrips:
    """``parts`` are the roles' loops over tiles.  ``inner`` are those along k of the tile that was
    walked first, ``reference`` is the state before them, ``loop`` the common one, ``start``,
    ``stop`` and ``by`` are its bounds, and ``some`` that it has a trip.  A trip that is not the
    first one has the number ``period * loop.trip`` and a remainder."""

    inner: list[WalkedRole]
    reference: WalkState
    loop: CommonLoop

    def __init__(self, walker: RoleWalker, parts: list[WalkedRole], entry: WalkState):
        self.context, self.walker, self.parts = walker.context, walker, parts
        self.entry = entry
        bodies = [part.loop.body for part in parts if part.loop is not None]
        self.ahead = int(any(map(walker.waits_before_its_loop, bodies[1:])))
        self.start, self.stop, self.by = self._bounds()
        self.some = conditions.less(self.start, self.stop)
        self.period = self._period()

    def bounds(self, part: WalkedRole) -> TileBounds:
        assert part.loop is not None
        node = part.loop
        start, stop, step = (
            symbolic_values.form(self.context, self.entry, part.scope, each)
            for each in (node.start, node.stop, node.step)
        )
        return TileBounds(start, stop, step)

    def _bounds(self) -> tuple[Polynomial, Polynomial, int]:
        """The bounds of the loop along k, which are the same for each tile."""
        part = self.parts[-1]
        assert part.loop is not None
        node = self._inner_loop(part.loop.body)
        scope = part.scope.inner()
        needed = {*names_in(node.start), *names_in(node.stop)} - part.scope.names.keys()
        state = self.entry.branch()
        if needed:
            defined = [one for one in _before(part.loop.body, node) if one.name in needed]
            (state,) = self.walker.run(self.context, defined, [state], scope)
        start, stop, step = (
            symbolic_values.form(self.context, state, scope, each)
            for each in (node.start, node.stop, node.step)
        )
        by = step.number()
        if by is None or by <= 0:
            raise Unsupported("a role's loop along k by a step that depends on sizes")
        return start, stop, by

    def _period(self) -> int:
        """After how many trips the remainders repeat that conditions of the loop ask for."""
        part = self.parts[-1]
        assert part.loop is not None
        return remainder_period(self.context, self._inner_loop(part.loop.body), self.by)

    def _inner_loop(self, nodes: tuple[Node, ...]) -> For[Node]:
        found = [node for node in self.walker.loops_in(nodes)]
        if len(found) != 1:
            raise Unsupported("a role that has no loop along k for a tile, or several")
        return found[0]

    # ---- one tile ----

    def _begun(
        self, state: WalkState, tile: Polynomial, ahead: int
    ) -> tuple[list[WalkedRole], list[WalkState]]:
        """The roles' loops along k, and the states before them."""
        found: list[WalkedRole] = []
        states = [state]
        for outer in self.parts:
            assert outer.loop is not None
            scope = outer.scope.inner()
            scope.names[outer.loop.variable] = tile
            part = WalkedRole(scope, outer.mask, outer.where)
            states = self.walker.enter(
                part, outer.loop.body, states, scope, outer.mask, outer.where
            )
            if not found and ahead:
                part.ahead = ahead
                states = self.walker.first_trips(part, states)
            found.append(part)
        return found, states

    def whole_tile(self, state: WalkState, tile: Polynomial) -> list[WalkState]:
        """The states after a tile, if the loop along k has a known length."""
        parts, states = self._begun(state, tile, self.ahead)
        states = [after for each in states for after in self.walker.loop(parts, each)]
        for part in parts:
            states = self.walker.after(part, states)
        return states

    def entered(
        self, head: WalkState, tile: Polynomial, path: tuple[Condition, ...], ahead: int
    ) -> WalkState:
        """The state before the loop along k, in calls in which ``path`` holds."""
        state = head.copy()
        state.path = path
        parts, states = self._begun(state, tile, ahead)
        if len(states) != 1:
            raise Unsupported("a tile that begins in several ways")
        (state,) = states
        if len(state.path) != len(path):
            raise Unsupported("a tile that some threads leave")
        bounds = [self.walker.bounds(part, state) for part in parts]
        if not hasattr(self, "loop"):
            self.inner, self.reference = parts, state.copy()
            self.loop = CommonLoop(self.walker, parts, *bounds[0])
        own = (self.start, self.stop, self.by)
        for start, stop, by in bounds:
            if not (polynomials.same(start, own[0]) and polynomials.same(stop, own[1])):
                raise Unsupported("roles with different loops along k")
            if by != own[2]:
                raise Unsupported("roles with different loops along k")
        pairs = zip(self.inner, parts, strict=True)
        if not all(role_scopes.alike(one.scope, two.scope) for one, two in pairs):
            raise Unsupported("names that differ from tile to tile")
        state.path = path
        return state

    def numbers(self, remainder: int | None) -> tuple[Polynomial, Polynomial]:
        """The numbers of the first trip, or of one that has a remainder, and of the next one."""
        trip = polynomials.ZERO
        if remainder is not None:
            trip = polynomials.scale(self.loop.trip, self.period)
            trip = polynomials.add(trip, polynomials.fixed(remainder))
        return trip, polynomials.add(trip, polynomials.fixed(1))

    def not_first(self, state: WalkState) -> Condition:
        """That the next trip is not the first one."""
        remainder = state.slots[REMAINDER]
        assert isinstance(remainder, Polynomial)
        trip, _ = self.numbers(remainder.number())
        return conditions.less(polynomials.ZERO, trip)

    # ---- trips along k ----

    def trip(
        self, head: WalkState, trip: Polynomial, after: Polynomial, only_going: bool = False
    ) -> tuple[WalkState, WalkState]:
        """The states after a trip: if there is another one, and if there is none."""
        more, here = self.loop.goes_on(after), head.branch()
        here.path = (*head.path, self.loop.goes_on(trip))
        self.context.ranged(here, self.loop.at(after), ())
        if not self.ahead:
            going = self.once(head, trip, ())
            gone = going.copy()
            going.path, gone.path = (*going.path, more), (*gone.path, conditions.negated(more))
            return going, gone
        going = self.once(head, trip, (more,))
        if only_going:
            return going, going
        return going, self.once(head, trip, (conditions.negated(more),), is_last=True)

    def once(
        self,
        head: WalkState,
        trip: Polynomial,
        given: tuple[Condition, ...],
        is_last: bool = False,
    ) -> WalkState:
        """The state after a trip of each role, in calls in which ``given`` holds."""
        state = head.copy()
        state.path = (*head.path, self.loop.goes_on(trip), *given)
        states = [state]
        for number, part in enumerate(self.inner):
            ahead = 0 if number else self.ahead
            if not (ahead and is_last):
                at = self.loop.at(polynomials.add(trip, polynomials.fixed(ahead)))
                states = self.walker.trip(part, states, at)
        if len(states) != 1 or len(states[0].path) != len(head.path) + 1 + len(given):
            raise Unsupported("a loop whose trips end in several ways")
        return states[0]

    def complete(self, gone: WalkState) -> None:
        """Totals that end where the loop does end there by name."""
        self.loop.complete(gone)

    def after(self, state: WalkState) -> list[WalkState]:
        """The states after what the roles do after the loop along k."""
        states = [state]
        for part in self.inner:
            own = replace(part, after=_with_own_scopes(part.after))
            states = self.walker.after(own, states)
        return states


def _with_own_scopes(after: list[Ending]) -> list[Ending]:
    """The same with scopes of their own: a pointer that is moved back stays where it was."""
    own: dict[int, WalkScope] = {}
    found: list[Ending] = []
    for nodes, scope, mask, where in after:
        found.append((nodes, own.setdefault(id(scope), scope.copy()), mask, where))
    return found
