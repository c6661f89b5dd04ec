"""What roles of a block of several tiles do for one tile, walked part by part."""

from __future__ import annotations

from gemmgen.ir.control import For
from gemmgen.ir.thread_code import Node
from gemmgen.prove import conditions, equal_orders, polynomials, role_scopes, symbolic_values
from gemmgen.prove.conditions import Condition
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.mbarriers import ALWAYS
from gemmgen.prove.own_tiles import TileBounds
from gemmgen.prove.peeled_loops import resolve
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.role_loops import CommonLoop, RoleWalker, WalkedRole
from gemmgen.prove.state import WalkState


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


class TileTrips:
    """``parts`` are the roles' loops over tiles.  ``inner`` are those along k of the tile that was
    walked first, ``reference`` is the state before them, ``loop`` the common one, and ``some`` that
    it has a trip, ``by`` its step."""

    inner: list[WalkedRole]
    reference: WalkState
    loop: CommonLoop

    def __init__(self, walker: RoleWalker, parts: list[WalkedRole], entry: WalkState):
        self.context, self.walker, self.parts = walker.context, walker, parts
        self.entry = entry
        bodies = [part.loop.body for part in parts if part.loop is not None]
        self.ahead = int(any(map(walker.waits_before_its_loop, bodies[1:])))
        self.some, self.by = self._has_trip()

    def bounds(self, part: WalkedRole) -> TileBounds:
        assert part.loop is not None
        node = part.loop
        start, stop, step = (
            symbolic_values.form(self.context, self.entry, part.scope, each)
            for each in (node.start, node.stop, node.step)
        )
        return TileBounds(start, stop, step)

    def _has_trip(self) -> tuple[Condition, int]:
        """That the loop along k has a trip, and its step."""
        part = self.parts[-1]
        assert part.loop is not None
        node = self._inner_loop(part.loop.body)
        start, stop, step = (
            symbolic_values.form(self.context, self.entry, part.scope, each)
            for each in (node.start, node.stop, node.step)
        )
        by = step.number()
        if by is None or by <= 0:
            raise Unsupported("a role's loop along k by a step that depends on sizes")
        return conditions.less(start, stop), by

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
            part = WalkedRole(outer.role, scope, outer.mask, outer.where)
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
        self, head: WalkState, tile: Polynomial, path: tuple[Condition, ...], some: bool
    ) -> WalkState:
        """The state before the loop along k, which has a trip or none."""
        state = head.copy()
        state.path = (*path, self.some if some else conditions.negated(self.some))
        parts, states = self._begun(state, tile, self.ahead if some else 0)
        if len(states) != 1:
            raise Unsupported("a tile that begins in several ways")
        (state,) = states
        if len(state.path) != len(path) + 1:
            raise Unsupported("a tile that some threads leave")
        bounds = [self.walker.bounds(part, state) for part in parts]
        if not hasattr(self, "loop"):
            self.inner, self.reference = parts, state.copy()
            self.loop = CommonLoop(self.walker, parts, *bounds[0])
        own = (self.loop.start, self.loop.stop, self.loop.by)
        for start, stop, by in bounds:
            if not (polynomials.same(start, own[0]) and polynomials.same(stop, own[1])):
                raise Unsupported("roles with different loops along k")
            if by != own[2]:
                raise Unsupported("roles with different loops along k")
        pairs = zip(self.inner, parts, strict=True)
        if not all(role_scopes.alike(one.scope, two.scope) for one, two in pairs):
            raise Unsupported("names that differ from tile to tile")
        state.path = (*path, self.some if some else conditions.negated(self.some))
        return state

    @property
    def not_first(self) -> Condition:
        return conditions.less(polynomials.ZERO, self.loop.trip)

    # ---- trips along k ----

    def trip(
        self, head: WalkState, trip: Polynomial, after: Polynomial, only_going: bool = False
    ) -> tuple[WalkState, WalkState]:
        """The states after a trip: if there is another one, and if there is none."""
        more, here = self.loop.goes_on(after), head.branch()
        here.path = (*head.path, self.loop.goes_on(trip))
        self.context.ranged(here, self.loop.at(after), ())
        if not self.ahead:
            going = self._once(head, trip, ())
            gone = going.copy()
            going.path, gone.path = (*going.path, more), (*gone.path, conditions.negated(more))
            return going, gone
        going = self._once(head, trip, (more,))
        if only_going:
            return going, going
        return going, self._once(head, trip, (conditions.negated(more),), is_last=True)

    def _once(
        self,
        head: WalkState,
        trip: Polynomial,
        given: tuple[Condition, ...],
        is_last: bool = False,
    ) -> WalkState:
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
            states = self.walker.after(part, states)
        return states
