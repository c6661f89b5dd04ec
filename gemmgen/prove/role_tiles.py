"""Roles of a block of several tiles: their loops over the block's tiles are one loop.

A trip of it is what each role does before its loop along k, the common loop along k, and what each
role does after it.  What holds before it, and before each trip along k, is found at points
(``tile_points``).  The tile, and the number of a trip along k that is not the first, are symbols.
"""

from __future__ import annotations

from functools import partial

from gemmgen.prove import (
    conditions,
    equal_orders,
    invariants,
    order_joins,
    own_tiles,
    polynomials,
    role_trips,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import TermTotals, Total
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.role_loops import RoleWalker, WalkedRole
from gemmgen.prove.role_trips import REMAINDER, TileTrips
from gemmgen.prove.state import WalkState
from gemmgen.prove.tile_points import Change, Key, TilePoints, key_of
from gemmgen.prove.walk_context import OutputStore

MOST_TRIPS = 80
TILES = 2
"""Tiles of a block that are walked where the contracted extent is known."""


def walk(walker: RoleWalker, parts: list[WalkedRole], state: WalkState) -> list[WalkState]:
    """The states after the loops over tiles of all roles, from before them."""
    return TileGraph(walker, parts, state).run()


class TileGraph:
    """The loops over tiles of some roles.  ``tile`` is any tile of the block, and ``inside`` holds
    within the loop."""

    tile: Polynomial
    inside: tuple[Condition, ...]

    def __init__(self, walker: RoleWalker, parts: list[WalkedRole], entry: WalkState):
        self.context, self.walker, self.parts, self.entry = walker.context, walker, parts, entry
        self.turns = self.trips_of_turns()
        self.guesses: dict[Key, WalkState] = {}

    def trips_of_turns(self) -> list[TileTrips]:
        """What walks the first tile, the second one, and so on."""
        return [TileTrips(self.walker, self.parts, self.entry)]

    def trips(self, state: WalkState) -> TileTrips:
        """What walks the tile that a state is at."""
        return self.turns[0]

    def check(self) -> None:
        """Claims that each tile of the block has its trip."""
        own_tiles.check(
            self.context, self.entry, [[self.turns[0].bounds(part)] for part in self.parts]
        )

    def run(self) -> list[WalkState]:
        context, grid = self.context, self.context.grid
        self.check()
        if context.bounded:
            return self._first_tiles()
        assert self.entry.barriers is not None
        context.periods.append((self.turns[0].by, self.entry.barriers.capacity))
        context.exact = False
        self.tile = grid.of_rank(grid.tile, context.rank)
        self.inside = (*self.entry.path, conditions.less(grid.tile, grid.tiles))
        self.range()
        self.entry = self.entry.copy()
        self.entry.slots |= self.counted()
        equal_orders.normalize(self.entry)
        self.points = TilePoints(context, self.entry, self._first)
        self.arrive_before_tile(self.entry)
        self.points.walk(self._visit)
        self.points.collect(self.as_first)
        return self.points.before_tiles()

    def counted(self) -> dict[str, Polynomial]:
        """Variables of a state that no thread has, before the first tile."""
        return {REMAINDER: polynomials.ZERO}

    def range(self) -> None:
        """That the number of the tile after the last one fits an int."""
        self.context.ranged(self.entry, polynomials.add(self.tile, self.context.grid.blocks), ())

    def as_first(self, state: WalkState, store: OutputStore) -> OutputStore:
        """A store of a tile by the threads that store the first tile."""
        return store

    # ---- some tiles, where each loop along k has a known length ----

    def _first_tiles(self) -> list[WalkState]:
        """The states after the first tile, or after more."""
        context, grid = self.context, self.context.grid
        found: list[WalkState] = []
        states = [self.entry]
        for number in range(TILES * len(self.turns)):
            tile, count = grid.tile, len(context.stores)
            path = (conditions.less(tile, grid.tiles),)
            if number:
                tile = polynomials.add(grid.block, polynomials.scale(grid.step, number))
                first = conditions.is_zero(polynomials.subtract(grid.tile, grid.block))
                path = (first, conditions.less(tile, grid.tiles))
            after: list[WalkState] = []
            trips = self.turns[number % len(self.turns)]
            for state in states:
                here = state.copy()
                here.path = (*here.path, *path)
                after += trips.whole_tile(here, grid.of_rank(tile, context.rank))
            if number:
                context.later += context.stores[count:]
                del context.stores[count:]
            states = after
            found += [state.copy() for state in after]
        return found

    # ---- points ----

    def _first(self, key: Key, state: WalkState) -> WalkState:
        """What a point claims before it is weakened."""
        kind, _ = key
        if kind in ("end", "none"):
            return state.copy()
        if kind == "trip":
            if key not in self.guesses:
                raise Unsupported("what a loop carries has no period that was found")
            return self.guesses[key]
        found = self.entry.copy()
        for name, value in state.slots.items():
            if isinstance(value, Polynomial) and self.is_carried(value):
                found.slots[name] = value
        return order_joins.with_order(found, state)

    def is_carried(self, value: Polynomial) -> bool:
        """Whether a variable that has this value before a tile has it in all states there."""
        return value.number() is not None

    def arrive_before_tile(self, state: WalkState) -> None:
        self.points.arrive("tile", state, self.entry.path)

    def arrive_after_trips(self, kind: str, state: WalkState) -> None:
        """A walk has come to the end of a tile's trips, or to a tile that has none."""
        some = self.trips(state).some
        given = some if kind == "end" else conditions.negated(some)
        self.points.arrive(kind, state, (*self.inside, given))

    def _visit(self, kind: str, state: WalkState) -> None:
        """Walks from a point to the next ones."""
        if kind == "tile":
            self.walk_tile(state)
        elif kind == "trip":
            remainder = state.slots[REMAINDER]
            assert isinstance(remainder, Polynomial)
            self.walk_trip(state, remainder.number())
        else:
            for out in self.trips(state).after(state.copy()):
                self.forget(out, state)
                self.settle(out, self.entry)
                self.arrive_before_tile(out)

    def forget(self, out: WalkState, before: WalkState) -> None:
        """Forgets which accesses are ordered by what a tile's end has left."""
        order_joins.forget_since(out, before)

    def walk_tile(self, head: WalkState) -> None:
        trips = self.trips(head)
        for some in (True, False):
            given = trips.some if some else conditions.negated(trips.some)
            ahead = trips.ahead if some else 0
            state = trips.entered(head, self.tile, (*self.inside, given), ahead)
            self.settle(state, state)
            if some:
                self.walk_trip(state, None)
            else:
                self.arrive_after_trips("none", state)

    def walk_trip(self, head: WalkState, remainder: int | None) -> None:
        """A trip along k from ``head``, the first one or one that has a remainder, and what comes
        after it."""
        trips = self.trips(head)
        trip, after = trips.numbers(remainder)
        going, gone = trips.trip(head, trip, after)
        self.go_on(head, going, remainder)
        self.end(gone)

    def go_on(self, head: WalkState, going: WalkState, remainder: int | None) -> None:
        """A walk has come from ``head`` to the next trip."""
        trips = self.trips(head)
        self.settle(going, trips.reference)
        change = self._next(going, trips, remainder)
        if key_of("trip", going) not in {*self.points.points, *self.guesses} and remainder is None:
            self._guess(head)
        self.points.arrive("trip", going, (*self.inside, trips.not_first(going)), change)

    def end(self, gone: WalkState) -> None:
        """A walk has come to the end of a tile's trips."""
        trips = self.trips(gone)
        trips.complete(gone)
        self.settle(gone, trips.reference)
        gone.slots[REMAINDER] = polynomials.ZERO
        self.arrive_after_trips("end", gone)

    def _next(self, state: WalkState, trips: TileTrips, remainder: int | None) -> Change:
        """Sets the remainder of the next trip; what its number is there in numbers from here."""
        period, round_ = trips.period, polynomials.symbol(trips.loop.name)
        number = 1 if remainder is None else remainder + 1
        state.slots[REMAINDER] = polynomials.fixed(number % period)
        rounds = polynomials.fixed(number // period)
        by = rounds if remainder is None else polynomials.add(round_, rounds)
        return partial(polynomials.substituted, name=trips.loop.name, by=by)

    def settle(self, state: WalkState, outer: WalkState) -> None:
        """Leaves what is outside of a loop's body, in the form of ``equal_orders``."""
        if state.broken or state.left:
            raise Unsupported("a loop that is left early, in a kernel with TMA")
        role_trips.settle(state, outer)

    def _guess(self, state: WalkState) -> None:
        """What may hold before any trip along k but the first, at each of its points."""
        trips, context = self.trips(state), self.context
        heads, keys = list[WalkState](), list[Key]()
        first = period = 0
        with context.ledger.silent():
            while not period or len(heads) < first + 2 * period:
                number = len(heads)
                if number > MOST_TRIPS:
                    raise Unsupported("what a loop carries has no period that was found")
                trip, after = polynomials.fixed(number), polynomials.fixed(number + 1)
                state = self.following(trips, state, trip, after)
                self.settle(state, trips.reference)
                state.path = self.inside
                state.slots[REMAINDER] = polynomials.fixed((number + 1) % trips.period)
                key = key_of("trip", state)
                if not period:
                    same = (i for i in range(number) if keys[i] == key)
                    at = next((i for i in same if _alike_totals(heads[i], state)), number)
                    first, period = at, number - at
                heads.append(state)
                keys.append(key)
        for number in range(first, first + period):
            one, two = heads[number], heads[number + period]
            here, _ = trips.numbers((number + 1) % trips.period)
            since = polynomials.subtract(here, polynomials.fixed(number + 1))
            found = invariants.regular(context, one, two, period, since)
            found = order_joins.with_order(found, two)
            self.guesses.setdefault(keys[number], found)

    def following(
        self, trips: TileTrips, state: WalkState, trip: Polynomial, after: Polynomial
    ) -> WalkState:
        """The state before the trip after one that is not the last."""
        return trips.trip(state, trip, after, only_going=True)[0]


def _alike_totals(one: WalkState, other: WalkState) -> bool:
    """Whether the same registers have a sum."""
    return all(
        isinstance(value, Total | TermTotals)
        == isinstance(other.registers.get(place), Total | TermTotals)
        for place, value in one.registers.items()
    )
