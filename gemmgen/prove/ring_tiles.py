"""A block of several tiles without roles: what TMA has loaded is carried from tile to tile.

The block is one role.  A copy is issued ``lead`` trips ahead of its use, if there is a trip that
uses it.  So a tile is walked once for each number of trips up to ``lead``, and once for more; of
these, trips that issue a copy are walked at their points, and the last ``lead`` ones after each of
these points.  In each walk it is stated which of the next trips there are: no copy depends on
sizes, and these cases together are all.
"""

from __future__ import annotations

from gemmgen.ir.control import For
from gemmgen.ir.thread_code import Node
from gemmgen.prove import conditions, polynomials, symbolic_values
from gemmgen.prove.conditions import Condition
from gemmgen.prove.goals import Where
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.role_loops import RoleWalker, Run, WalkedRole
from gemmgen.prove.role_tiles import TileGraph
from gemmgen.prove.role_trips import TileTrips
from gemmgen.prove.state import WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext


def covers(context: WalkContext, node: For[Node], state: WalkState, scope: WalkScope) -> bool:
    """Whether a loop has the step of a loop over the tiles of a block, which depends on
    how many blocks there are."""
    step = symbolic_values.form(context, state, scope, node.step)
    return bool(step.symbols & context.grid.step.symbols)


def walk(
    context: WalkContext, node: For[Node], state: WalkState, scope: WalkScope, run: Run
) -> list[WalkState]:
    """The states after a loop over the tiles of a block."""
    if state.mask is not None:
        raise Unsupported("a loop over tiles of some threads")
    part = WalkedRole(scope, None, Where(None, context.where.origins), node)
    return _RingTiles(RoleWalker(context, run), [part], state).run()


class _RingTiles(TileGraph):
    @property
    def lead(self) -> int:
        """How many trips ahead a condition of the loop may look: at most the stages but one."""
        assert self.entry.barriers is not None
        sizes = (size for _, size in self.entry.barriers.first.values())
        return max(1, max(sizes, default=1) - 1)

    def walk_tile(self, head: WalkState) -> None:
        trips = self.turns[0]
        for count in range(self.lead + 2):
            given = tuple(self._there_is(trips, number, count) for number in range(self.lead + 1))
            state = trips.entered(head, self.tile, (*self.inside, *given), 0)
            self.settle(state, state)
            if not count:
                self.arrive_after_trips("none", state)
            elif count <= self.lead:
                self._last_trips(state, polynomials.ZERO, count)
            else:
                self.walk_trip(state, None)

    def _there_is(self, trips: TileTrips, number: int, count: int) -> Condition:
        """Whether there is a trip with this number, if there are ``count`` trips or, where that is
        more than ``lead``, at least ``count``."""
        at = polynomials.add(trips.start, polynomials.fixed(number * trips.by))
        more = conditions.less(at, trips.stop)
        return more if number < count else conditions.negated(more)

    def walk_trip(self, head: WalkState, remainder: int | None) -> None:
        trips = self.turns[0]
        trip, after = trips.numbers(remainder)
        self.context.ranged(self._within(head, trip), trips.loop.at(after), ())
        out = self._once(head, trip, self.lead + 1)
        later = trips.loop.goes_on(polynomials.add(after, polynomials.fixed(self.lead)))
        going, last = out.copy(), out
        going.path, last.path = (*out.path, later), (*out.path, conditions.negated(later))
        self.go_on(head, going, remainder)
        self._settled(last)
        self._last_trips(last, after, self.lead)

    def _within(self, head: WalkState, trip: Polynomial) -> WalkState:
        here = head.branch()
        here.path = (*head.path, self.turns[0].loop.goes_on(trip))
        return here

    def _last_trips(self, state: WalkState, trip: Polynomial, count: int) -> None:
        """The last ``count`` trips, from one with this number on."""
        trips = self.turns[0]
        for left in range(count, 0, -1):
            after = polynomials.add(trip, polynomials.fixed(1))
            self.context.ranged(self._within(state, trip), trips.loop.at(after), ())
            state = self._once(state, trip, left)
            trip = after
            if left > 1:
                self._settled(state)
        self.end(state)

    def _settled(self, state: WalkState) -> None:
        path = state.path
        self.settle(state, self.turns[0].reference)
        state.path = path

    def _once(self, head: WalkState, trip: Polynomial, count: int) -> WalkState:
        """The state after a trip, if there are just ``count`` trips left or, where that is more
        than ``lead``, at least ``count``."""
        trips, given = self.turns[0], list[Condition]()
        for ahead in range(1, self.lead + 1):
            more = trips.loop.goes_on(polynomials.add(trip, polynomials.fixed(ahead)))
            given.append(more if ahead < count else conditions.negated(more))
        return trips.once(head, trip, tuple(given))

    def following(
        self, trips: TileTrips, state: WalkState, trip: Polynomial, after: Polynomial
    ) -> WalkState:
        found = self._once(state, trip, self.lead + 1)
        later = trips.loop.goes_on(polynomials.add(after, polynomials.fixed(self.lead)))
        found.path = (*found.path, later)
        return found
