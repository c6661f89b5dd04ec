"""What holds at the points of a loop over the tiles of a block, and what was found from there.

A *point* is the state before a tile, before a trip along k, or after the last one: states of one
point agree in the numbers that are carried (the stages and phases of the ring) and in the phases of
all mbarriers.  What holds at a point is weakened until it holds whenever a walk comes to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gemmgen.prove import conditions, data, invariants, order_joins, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.goals import Ledger
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import OutputStore, WalkContext

MOST_POINTS = 400
KINDS = ("trip", "end", "none", "tile")
"""Points before a trip along k, after the last one, after none, and before a tile; those that come
first are walked first."""

Change = Callable[[Polynomial], Polynomial]
Key = tuple[str, object]


@dataclass
class _Point:
    """What holds at a point, and what was found from there to the next points."""

    state: WalkState
    ledger: Ledger = field(default_factory=Ledger)
    stores: list[OutputStore] = field(default_factory=list[OutputStore])


def key_of(kind: str, state: WalkState) -> Key:
    """The point of this kind that a state is at."""
    numbers: list[tuple[str, int]] = []
    for name, value in state.slots.items():
        own = value.number() if isinstance(value, Polynomial) else None
        if own is not None:
            numbers.append((name, own))
    return kind, (tuple(sorted(numbers)), order_joins.concrete(state))


class TilePoints:
    """All points; ``first`` is what one claims before it is weakened, of its key and of the state
    that comes to it first."""

    def __init__(
        self,
        context: WalkContext,
        entry: WalkState,
        first: Callable[[Key, WalkState], WalkState],
    ):
        self.context, self.entry, self.first = context, entry, first
        self.points: dict[Key, _Point] = {}
        self.pending: dict[Key, None] = {}

    def arrive(
        self,
        kind: str,
        state: WalkState,
        path: tuple[Condition, ...],
        change: Change = lambda form: form,
    ) -> None:
        """A walk has come to a point in this state; ``change`` makes what is claimed there of any
        trip a claim for this one."""
        key = key_of(kind, state)
        is_new = key not in self.points
        if is_new:
            if len(self.points) == MOST_POINTS:
                raise Unsupported("roles that come to a tile in too many ways")
            known = self.first(key, state)
            order_joins.join(known, known.copy())
            known.path, known.mask, known.guard = path, self.entry.mask, self.entry.guard
            self.points[key] = _Point(known)
        known = self.points[key].state
        free = len(self.context.free)
        forgot = invariants.weaken(self.context, known, state, change)
        if len(self.context.free) != free:
            raise Unsupported("a number that differs from tile to tile")
        if order_joins.join(known, state) or forgot or is_new:
            self.pending[key] = None

    def walk(self, visit: Callable[[str, WalkState], None]) -> None:
        """Walks from each point to the next ones, until nothing is weakened any more."""
        context = self.context
        while self.pending:
            key = min(self.pending, key=lambda key: KINDS.index(key[0]))
            del self.pending[key]
            point = self.points[key]
            outer, stores = context.ledger, context.stores
            context.ledger = point.ledger = Ledger(quiet=outer.quiet)
            context.stores = point.stores = []
            try:
                visit(key[0], point.state)
            finally:
                context.ledger, context.stores = outer, stores

    def before_tiles(self) -> list[WalkState]:
        """The states before a tile, or after the last one."""
        return [point.state.copy() for (kind, _), point in self.points.items() if kind == "tile"]

    def collect(self, as_first: Callable[[WalkState, OutputStore], OutputStore]) -> None:
        """Adds what each point has found; the stores of tiles must be the same ones, whichever
        stages they begin with.  ``as_first`` is a store by the threads that store the first
        tile."""
        context = self.context
        first: dict[str, list[OutputStore]] = {}
        for (kind, _), point in self.points.items():
            context.ledger.add(point.ledger)
            if not point.stores:
                continue
            if kind not in ("end", "none"):
                raise Unsupported("a store to C before the last product of a tile")
            stores = [as_first(point.state, store) for store in point.stores]
            if kind not in first:
                first[kind] = stores
                context.stores += stores
            elif not _alike(first[kind], stores):
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
