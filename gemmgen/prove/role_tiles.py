"""Roles of a block of several tiles: their loops over the block's tiles are one loop.

A trip of it is what each role does before its loop along k, the common loop along k, and what each
role does after it.  A *point* is the state before such a trip, before a trip along k, or after the
last one: states of one point agree in the numbers that are carried (the stages and phases of the
ring) and in the phases of all mbarriers.  What holds at a point is weakened until it holds whenever
a walk comes to it.  The tile, and the number of a trip along k that is not the first, are symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from gemmgen.prove import (
    conditions,
    data,
    equal_orders,
    invariants,
    order_joins,
    own_tiles,
    polynomials,
    role_trips,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.goals import Ledger
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.role_loops import RoleWalker, WalkedRole
from gemmgen.prove.role_trips import TileTrips
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import OutputStore

MOST_POINTS = 200
MOST_TRIPS = 80
TILES = 2
"""Tiles of a block that are walked where the contracted extent is known."""
KINDS = ("trip", "end", "none", "tile")
"""Points before a trip along k, after the last one, after none, and before a tile; those that come
first are walked first."""

Change = Callable[[Polynomial], Polynomial]
Key = tuple[str, object]


def walk(walker: RoleWalker, parts: list[WalkedRole], state: WalkState) -> list[WalkState]:
    """The states after the loops over tiles of all roles, from before them."""
    return _Tiles(walker, parts, state).run()


@dataclass
class _Point:
    """What holds at a point, and what was found from there to the next points."""

    state: WalkState
    ledger: Ledger = field(default_factory=Ledger)
    stores: list[OutputStore] = field(default_factory=list[OutputStore])


class _Tiles:
    def __init__(self, walker: RoleWalker, parts: list[WalkedRole], entry: WalkState):
        self.context, self.walker, self.parts, self.entry = walker.context, walker, parts, entry
        self.trips = TileTrips(walker, parts, entry)
        self.points: dict[Key, _Point] = {}
        self.pending: dict[Key, None] = {}
        self.guesses: dict[Key, WalkState] = {}

    def run(self) -> list[WalkState]:
        context, grid = self.context, self.context.grid
        own_tiles.check(context, self.entry, [self.trips.bounds(part) for part in self.parts])
        if context.bounded:
            return self._first_tiles()
        assert self.entry.barriers is not None
        context.periods.append((self.trips.by, self.entry.barriers.capacity))
        context.exact = False
        self.tile = grid.of_rank(grid.tile, context.rank)
        self.inside = (*self.entry.path, conditions.less(grid.tile, grid.tiles))
        context.ranged(self.entry, polynomials.add(self.tile, grid.blocks), ())
        self.entry = self.entry.copy()
        equal_orders.normalize(self.entry)
        self._arrive("tile", self.entry, self.entry.path)
        while self.pending:
            key = min(self.pending, key=lambda key: KINDS.index(key[0]))
            del self.pending[key]
            self._visit(key)
        self._collect()
        return [point.state.copy() for (kind, _), point in self.points.items() if kind == "tile"]

    # ---- some tiles, where each loop along k has a known length ----

    def _first_tiles(self) -> list[WalkState]:
        """The states after the first tile, or after more."""
        context, grid = self.context, self.context.grid
        found: list[WalkState] = []
        states = [self.entry]
        for number in range(TILES):
            tile, count = grid.tile, len(context.stores)
            path = (conditions.less(tile, grid.tiles),)
            if number:
                tile = polynomials.add(grid.block, polynomials.scale(grid.step, number))
                first = conditions.is_zero(polynomials.subtract(grid.tile, grid.block))
                path = (first, conditions.less(tile, grid.tiles))
            after: list[WalkState] = []
            for state in states:
                here = state.copy()
                here.path = (*here.path, *path)
                after += self.trips.whole_tile(here, grid.of_rank(tile, context.rank))
            if number:
                context.later += context.stores[count:]
                del context.stores[count:]
            states = after
            found += [state.copy() for state in after]
        return found

    # ---- points ----

    def _key(self, kind: str, state: WalkState) -> Key:
        numbers: list[tuple[str, int]] = []
        for name, value in state.slots.items():
            own = value.number() if isinstance(value, Polynomial) else None
            if own is not None:
                numbers.append((name, own))
        return kind, (tuple(sorted(numbers)), order_joins.concrete(state))

    def _arrive(
        self,
        kind: str,
        state: WalkState,
        path: tuple[Condition, ...],
        change: Change = lambda form: form,
    ) -> None:
        """A walk has come to a point in this state; ``change`` makes what is claimed there of any
        trip a claim for this one."""
        key = self._key(kind, state)
        is_new = key not in self.points
        if is_new:
            if len(self.points) == MOST_POINTS:
                raise Unsupported("roles that come to a tile in too many ways")
            known = self._first(key, state)
            known.path, known.mask, known.guard = path, self.entry.mask, self.entry.guard
            self.points[key] = _Point(known)
        known = self.points[key].state
        free = len(self.context.free)
        forgot = invariants.weaken(self.context, known, state, change)
        if len(self.context.free) != free:
            raise Unsupported("a number that differs from tile to tile")
        if order_joins.join(known, state) or forgot or is_new:
            self.pending[key] = None

    def _first(self, key: Key, state: WalkState) -> WalkState:
        """What a point claims before it is weakened."""
        kind, _ = key
        if kind in ("end", "none"):
            found = state.copy()
        elif kind == "trip":
            if key not in self.guesses:
                raise Unsupported("what a loop carries has no period that was found")
            found = self.guesses[key]
        else:
            found = self.entry.copy()
            for name, value in state.slots.items():
                if isinstance(value, Polynomial) and value.number() is not None:
                    found.slots[name] = value
            found = order_joins.with_order(found, state)
        order_joins.join(found, found.copy())
        return found

    def _visit(self, key: Key) -> None:
        """Walks from a point to the next ones."""
        context, point, kind = self.context, self.points[key], key[0]
        outer, stores = context.ledger, context.stores
        context.ledger = point.ledger = Ledger(quiet=outer.quiet)
        context.stores = point.stores = []
        try:
            if kind == "tile":
                self._tile(point.state)
            elif kind == "trip":
                trip = self.trips.loop.trip
                later = polynomials.add(trip, polynomials.fixed(1))
                self._trip(point.state, trip, later)
            else:
                for out in self.trips.after(point.state.copy()):
                    order_joins.forget_since(out, point.state)
                    self._settle(out, self.entry)
                    self._arrive("tile", out, self.entry.path)
        finally:
            context.ledger, context.stores = outer, stores

    def _tile(self, head: WalkState) -> None:
        for some in (True, False):
            state = self.trips.entered(head, self.tile, self.inside, some)
            self._settle(state, state)
            if some and not self.guesses:
                self._guess(state)
            if some:
                self._trip(state, polynomials.ZERO, polynomials.fixed(1))
            else:
                self._arrive("none", state, state.path)

    def _trip(self, head: WalkState, trip: Polynomial, after: Polynomial) -> None:
        """A trip along k from ``head``, and what comes after it."""
        going, gone = self.trips.trip(head, trip, after)
        self._settle(going, self.trips.reference)
        name = self.trips.loop.name
        self._arrive(
            "trip",
            going,
            (*self.inside, self.trips.not_first),
            partial(polynomials.substituted, name=name, by=after),
        )
        self.trips.complete(gone)
        self._settle(gone, self.trips.reference)
        self._arrive("end", gone, (*self.inside, self.trips.some))

    def _settle(self, state: WalkState, outer: WalkState) -> None:
        """Leaves what is outside of a loop's body, in the form of ``equal_orders``."""
        if state.broken or state.left:
            raise Unsupported("a loop that is left early, in a kernel with TMA")
        role_trips.settle(state, outer)

    def _guess(self, state: WalkState) -> None:
        """What may hold before any trip along k but the first, at each of its points."""
        trips, context = self.trips, self.context
        heads, keys = list[WalkState](), list[Key]()
        period = 0
        with context.ledger.silent():
            while not period or len(heads) < 2 * period:
                number = len(heads)
                if number > MOST_TRIPS:
                    raise Unsupported("what a loop carries has no period that was found")
                trip, after = polynomials.fixed(number), polynomials.fixed(number + 1)
                state, _ = trips.trip(state, trip, after, only_going=True)
                self._settle(state, trips.reference)
                state.path = self.inside
                key = self._key("trip", state)
                if not period and key in keys:
                    period = number - keys.index(key)
                heads.append(state)
                keys.append(key)
        for number, (first, second) in enumerate(zip(heads, heads[period:], strict=False)):
            since = polynomials.subtract(trips.loop.trip, polynomials.fixed(number + 1))
            found = invariants.regular(context, first, second, period, since)
            found = order_joins.with_order(found, second)
            self.guesses.setdefault(keys[number], found)

    # ---- what was found ----

    def _collect(self) -> None:
        """Adds what each point has found; the stores of tiles must be the same ones, whichever
        stages they begin with."""
        context = self.context
        first: dict[str, list[OutputStore]] = {}
        for (kind, _), point in self.points.items():
            context.ledger.add(point.ledger)
            if not point.stores:
                continue
            if kind not in ("end", "none"):
                raise Unsupported("a store to C before the last product of a tile")
            if kind not in first:
                first[kind] = point.stores
                context.stores += point.stores
            elif not _alike(first[kind], point.stores):
                raise Unsupported("stores that differ from tile to tile")
        for kind in ("end", "none"):
            counts = {len(p.stores) for (own, _), p in self.points.items() if own == kind}
            if len(counts) > 1:
                raise Unsupported("stores that differ from tile to tile")


def _alike(some: list[OutputStore], others: list[OutputStore]) -> bool:
    return len(some) == len(others) and all(map(_same_store, some, others))


def _same_store(one: OutputStore, other: OutputStore) -> bool:
    own = None if one.mask is None else one.mask.tobytes()
    their = None if other.mask is None else other.mask.tobytes()
    return (
        own == their
        and [letter for letter, _ in one.at] == [letter for letter, _ in other.at]
        and all(polynomials.same(x, y) for (_, x), (_, y) in zip(one.at, other.at, strict=True))
        and [*map(conditions.signature, one.path)] == [*map(conditions.signature, other.path)]
        and data.same(one.value, other.value)
    )
