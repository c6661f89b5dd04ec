"""Ping-pong consumers of a block of several tiles: each has every other one of its tiles.

A tile is walked with the producer and with the consumer whose turn it is.  The *position* in the
ring is counted with each trip along k: a number of stages and rounds, modulo twice as many as there
are stages.  All tiles have as many trips, so the position after a tile is the one before it and
that many trips, whichever number that is.  A consumer that skips a tile is to have the stage and
the phase of this position: that is shown where it skips.  Until the other consumer's tile ends,
symbols stand for them; then they are the numbers of the position that was counted.
"""

from __future__ import annotations

import numpy as np

from gemmgen.ir.control import AdvanceRing, Assign
from gemmgen.ir.expr import Element
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.target import WARP
from gemmgen.ir.traversal import inside
from gemmgen.numerics.operators import Ints
from gemmgen.prove import conditions, data, own_tiles, polynomials, warp_clocks
from gemmgen.prove.conditions import Condition
from gemmgen.prove.integers import Unsupported, divided
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.role_loops import RoleWalker, WalkedRole
from gemmgen.prove.role_tiles import TileGraph
from gemmgen.prove.role_trips import TileTrips
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import OutputStore, WalkContext

MOST_BLOCKS = 2**29 - 1
"""More blocks than a GPU holds at once: no more are launched, since each has several tiles."""
TURN, POSITION = "turn@@0", "position@@0"
"""Variables of each state: the consumer whose tile it is, and the position in the ring."""
SECONDS = 2.0


def limit_blocks(context: WalkContext) -> None:
    """States how many blocks there are at most: a consumer's next tile is two grids ahead."""
    step = context.grid.step
    if not step.concrete:
        most = polynomials.fixed(MOST_BLOCKS // context.grid.ranks)
        context.theory.known(step, conditions.at_least(most, step))
        context.assumed.append(f"gridDim.x <= {MOST_BLOCKS}")


def walk(walker: RoleWalker, parts: list[WalkedRole], state: WalkState) -> list[WalkState]:
    """The states after the loops over tiles of a producer and of consumers that alternate."""
    return _PingPong(walker, parts, state).run()


class _TurnTrips(TileTrips):
    """The trips of a producer and of one consumer; ``stages`` are those of the ring."""

    stages: int

    def once(
        self,
        head: WalkState,
        trip: Polynomial,
        given: tuple[Condition, ...],
        is_last: bool = False,
    ) -> WalkState:
        found = super().once(head, trip, given, is_last)
        position = (_number(found, POSITION) + 1) % (2 * self.stages)
        found.slots[POSITION] = polynomials.fixed(position)
        return found


class _PingPong(TileGraph):
    """``stage`` and ``phase`` are symbols: those of the position at which the present tile ends;
    ``meaning`` says which of them a consumer's variable has."""

    def __init__(self, walker: RoleWalker, parts: list[WalkedRole], entry: WalkState):
        self.producer, *self.consumers = parts
        self.context = walker.context
        self.stages = self._stages(entry)
        super().__init__(walker, parts, entry)
        self.carried = {
            key for part in self.consumers for key in entry.slots if _is_assigned(part, key)
        }
        self.steps = self._steps()
        own = (self.context.theory.symbol(f"{one} after the tile") for one in ("stage", "phase"))
        self.stage, self.phase = map(_name, own)
        self.meaning: dict[str, str] = {}

    def trips_of_turns(self) -> list[TileTrips]:
        found: list[TileTrips] = []
        for consumer in self.consumers:
            trips = _TurnTrips(self.walker, [self.producer, consumer], self.entry)
            trips.stages = self.stages
            found.append(trips)
        return found

    def trips(self, state: WalkState) -> TileTrips:
        return self.turns[_number(state, TURN)]

    def counted(self) -> dict[str, Polynomial]:
        return {**super().counted(), TURN: polynomials.ZERO, POSITION: polynomials.ZERO}

    def check(self) -> None:
        bounds = [trips.bounds(trips.parts[-1]) for trips in self.turns]
        producer = self.turns[0].bounds(self.producer)
        own_tiles.check(self.context, self.entry, [[producer], bounds])

    def range(self) -> None:
        ahead = polynomials.scale(self.context.grid.blocks, len(self.turns))
        self.context.ranged(self.entry, polynomials.add(self.tile, ahead), ())

    def _stages(self, entry: WalkState) -> int:
        """Those of the ring that the producer fills."""
        assert self.producer.loop is not None and entry.barriers is not None
        for node in inside(self.producer.loop.body):
            if isinstance(node, Instruction) and node.name == "expect_bytes":
                barrier = node.operands[0]
                if isinstance(barrier, Element) and barrier.buffer in entry.barriers.first:
                    _, stages = entry.barriers.first[barrier.buffer]
                    if stages > 1:
                        return stages
        raise Unsupported("a ring of one stage, for consumers that alternate")

    def _steps(self) -> Polynomial:
        """The number of trips along k of each tile."""
        trips = self.turns[0]
        for other in self.turns[1:]:
            same = polynomials.same(other.start, trips.start) and other.by == trips.by
            if not (same and polynomials.same(other.stop, trips.stop)):
                raise Unsupported("consumers with different loops along k")
        length = polynomials.subtract(trips.stop, trips.start)
        if not self.context.theory.holds((), conditions.not_negative(length), SECONDS):
            raise Unsupported("a loop along k that may end before it begins")
        last = polynomials.add(length, polynomials.fixed(trips.by - 1))
        return divided(self.context.theory, last, polynomials.fixed(trips.by))[0]

    # ---- what a consumer carries over the other one's tile ----

    def is_carried(self, value: Polynomial) -> bool:
        return super().is_carried(value) or _name(value) in (self.stage, self.phase)

    def arrive_before_tile(self, state: WalkState) -> None:
        """The numbers to which a consumer has skipped become symbols, if they are those of the
        position after the next tile."""
        if state is self.entry:
            self._note_met(state)
        else:
            turn = (_number(state, TURN) + 1) % len(self.turns)
            state.slots[TURN] = polynomials.fixed(turn)
        for key in self.carried:
            value = state.slots[key]
            if not isinstance(value, Polynomial):
                raise Unsupported(f"{key.partition('@')[0]} of a consumer after its tile")
            if value.number() is None:
                state.slots[key] = self._skipped(state, key, value)
        super().arrive_before_tile(state)

    def _skipped(self, state: WalkState, key: str, value: Polynomial) -> Polynomial:
        theory, stages = self.context.theory, polynomials.fixed(self.stages)
        rounds, stage = divmod(_number(state, POSITION), self.stages)
        later = polynomials.add(polynomials.fixed(stage), self.steps)
        more, stage_after = divided(theory, later, stages)
        more = polynomials.add(polynomials.fixed(rounds), more)
        _, phase_after = divided(theory, more, polynomials.fixed(2))
        name = key.partition("@")[0]
        both = {self.stage: stage_after, self.phase: phase_after}
        for own in [self.meaning[name]] if name in self.meaning else both:
            apart = conditions.is_zero(polynomials.subtract(value, both[own]))
            if polynomials.same(value, both[own]) or theory.holds(state.path, apart, SECONDS):
                self.meaning[name] = own
                return polynomials.symbol(own)
        raise Unsupported(f"the {name} of a consumer after the other one's tile")

    def arrive_after_trips(self, kind: str, state: WalkState) -> None:
        rounds, stage = divmod(_number(state, POSITION), self.stages)
        values = {self.stage: polynomials.fixed(stage), self.phase: polynomials.fixed(rounds)}
        for key in self.carried:
            value = state.slots[key]
            if isinstance(value, Polynomial) and _name(value) in values:
                state.slots[key] = values[_name(value)]
        super().arrive_after_trips(kind, state)

    def forget(self, out: WalkState, before: WalkState) -> None:
        """Notes first which accesses the warps of a consumer know of each other: they may write
        its slices of C again before they meet."""
        self._note_met(out)
        super().forget(out, before)

    def _note_met(self, state: WalkState) -> None:
        clocks = state.clocks
        assert clocks is not None
        masks = [part.mask for part in self.consumers if part.mask is not None]
        warps = [np.unique(np.flatnonzero(mask) // WARP) for mask in masks]
        if clocks.groups is None:
            clocks.groups = np.zeros(clocks.warps, np.int64)
            for number, own in enumerate(warps):
                clocks.groups[own] = 1 << number
        for trace in state.traces:
            for own in warps:
                warp_clocks.note_met(clocks, trace, own)

    # ---- stores ----

    def as_first(self, state: WalkState, store: OutputStore) -> OutputStore:
        turn, node = _number(state, TURN), store.where.node
        is_box = isinstance(node, Instruction) and node.name == "store_box"
        if not turn or is_box:  # TMA stores what no thread has
            return store
        places = self._places(turn)
        at = tuple((letter, polynomials.taken(form, places)) for letter, form in store.at)
        path = tuple(
            conditions.with_forms(one, lambda form: polynomials.taken(form, places))
            for one in store.path
        )
        mask = None if store.mask is None else store.mask[places]
        return OutputStore(at, data.taken(store.value, places), path, mask, store.where)

    def _places(self, turn: int) -> Ints:
        """For each thread of the first consumer the one of another, and the other way round."""
        first, other = self.consumers[0].mask, self.consumers[turn].mask
        assert first is not None and other is not None
        found = np.arange(first.size)
        found[first], found[other] = np.flatnonzero(other), np.flatnonzero(first)
        return found


def _number(state: WalkState, key: str) -> int:
    value = state.slots[key]
    number = value.number() if isinstance(value, Polynomial) else None
    assert number is not None
    return number


def _name(value: Polynomial) -> str:
    """The symbol that a value is, if it is one."""
    names = value.symbols
    own = next(iter(names)) if len(names) == 1 else ""
    return own if polynomials.same(value, polynomials.symbol(own)) else ""


def _is_assigned(part: WalkedRole, key: str) -> bool:
    """Whether a variable is one of a role that changes from tile to tile."""
    assert part.loop is not None
    name, role, _ = key.rsplit("@", 2)
    parts = inside(part.loop.body)
    own = [node for node in parts if isinstance(node, Assign)]
    own += [one for node in parts if isinstance(node, AdvanceRing) for one in node.assignments]
    return role == part.scope.role and name in {node.target for node in own}
