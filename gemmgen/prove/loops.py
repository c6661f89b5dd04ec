"""Loops: those of known length trip by trip, the others by an invariant."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from gemmgen.ir.control import For
from gemmgen.ir.thread_code import Node
from gemmgen.prove import (
    condition_queries,
    conditions,
    invariants,
    polynomials,
    symbolic_values,
    total_ends,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import WalkScope, WalkState
from gemmgen.prove.walk_context import WalkContext

Body = Callable[[list[WalkState], WalkScope], list[WalkState]]
LONGEST_PERIOD = 20
MOST_TRIPS = 4096
MOST_SAMPLED = 12  # trips of a sampled call


def loop(
    context: WalkContext,
    node: For[Node],
    state: WalkState,
    scope: WalkScope,
    body: Body,
    kind: type[TripLoop],
) -> list[WalkState]:
    """The states after a loop, which is of this ``kind`` if its length is not known; those that
    broke out of it are on their way again."""
    start = symbolic_values.form(context, state, scope, node.start)
    stop = symbolic_values.form(context, state, scope, node.stop)
    step = symbolic_values.form(context, state, scope, node.step)
    by = step.number()
    if not (start.uniform and stop.uniform and step.uniform):
        raise Unsupported("a loop with other bounds in each thread")
    distance = polynomials.subtract(stop, start).number()
    if distance is not None and by is not None and by > 0:
        after = _unrolled(node, state, scope, body, start, distance, by)
    elif by is not None and by > 0:
        after = kind(context, node, scope, body, start, stop, by).run(state)
    elif polynomials.same(step, context.grid.blocks):
        after = _over_tiles(context, node, state, scope, body, start, stop)
    else:
        raise Unsupported(f"a loop by {polynomials.text(step)}")
    for each in after:
        each.broken = False
    return after


def _unrolled(
    node: For[Node],
    state: WalkState,
    scope: WalkScope,
    body: Body,
    start: Polynomial,
    distance: int,
    by: int,
) -> list[WalkState]:
    if distance > MOST_TRIPS * by:
        raise Unsupported(f"a loop of {distance // by} trips")
    states = [state]
    for at in range(0, distance, by):
        inner = scope.inner()
        inner.names[node.variable] = polynomials.add(start, polynomials.fixed(at))
        states = body(states, inner)
    return states


def _over_tiles(
    context: WalkContext,
    node: For[Node],
    entry: WalkState,
    scope: WalkScope,
    body: Body,
    start: Polynomial,
    stop: Polynomial,
) -> list[WalkState]:
    """A persistent block's loop over its tiles: one trip, for any tile.

    Each number of a tile is that of one block's trip: the block's own, and every gridDim.x-th from
    there on.  Nothing is known of what a trip leaves but what holds before the first, too.
    """
    grid, tile = context.grid, context.grid.of_rank(context.grid.tile, context.rank)
    if not polynomials.same(start, grid.of_rank(grid.block, context.rank)):
        raise Unsupported(f"a loop over tiles from {polynomials.text(start)} on")
    apart = polynomials.subtract(stop, polynomials.scale(grid.tiles, grid.ranks))
    context.claim(entry, "coverage", conditions.is_zero(apart), "a tile has no block")
    entry.slots = {key: own for key, own in entry.slots.items() if not scope.has_ended(key)}

    def once(head: WalkState) -> list[WalkState]:
        state = head.copy()
        going = conditions.less(grid.tile, stop if grid.ranks == 1 else grid.tiles)
        state.path, state.left = (*state.path, going), False
        context.ranged(state, polynomials.add(tile, grid.blocks), ())
        inner = scope.inner()
        inner.names[node.variable] = tile
        return body([state], inner)

    if context.bounded:
        outs = once(entry)
        for out in outs:
            out.path = entry.path
        return outs
    context.exact = False
    known, mark = entry.copy(), context.mark()
    while True:
        changed = False
        for out in once(known):
            if out.left:
                raise Unsupported("a loop over tiles that is left early")
            changed |= invariants.weaken(context, known, out, lambda form: form)
        if not changed:
            return [known]
        context.reset(mark)


class TripLoop:
    """A loop of unknown length: ``trip`` is the number of the trip, ``at`` its variable then."""

    def __init__(
        self,
        context: WalkContext,
        node: For[Node],
        scope: WalkScope,
        body: Body,
        start: Polynomial,
        stop: Polynomial,
        by: int,
    ):
        self.context, self.node, self.scope, self.body = context, node, scope, body
        self.start, self.stop, self.by = start, stop, by
        self.trip = context.theory.symbol(f"trip of {node.variable}")
        context.theory.known(self.trip, conditions.not_negative(self.trip))
        dice = random.Random(0)
        context.theory.valued(self.trip, lambda _: dice.randrange(MOST_SAMPLED))
        self.name = next(iter(self.trip.symbols))

    def at(self, trip: Polynomial) -> Polynomial:
        return polynomials.add(self.start, polynomials.scale(trip, self.by))

    def goes_on(self, trip: Polynomial) -> Condition:
        return conditions.less(self.at(trip), self.stop)

    def once(self, head: WalkState, trip: Polynomial) -> list[WalkState]:
        """One trip from ``head``."""
        state = head.copy()
        state.path = (*state.path, self.goes_on(trip))
        state.left = False
        inner = self.scope.inner()
        inner.names[self.node.variable] = self.at(trip)
        outs = self.body([state], inner)
        for out in outs:
            if not (out.broken or out.left):
                after = self.at(polynomials.add(trip, polynomials.fixed(1)))
                total_ends.before_next(self.context, out, after)
        return outs

    def run(self, entry: WalkState) -> list[WalkState]:
        context = self.context
        self._forget_ended(entry)
        never = conditions.negated(self.goes_on(polynomials.ZERO))
        if condition_queries.is_stated(entry.path, never):
            return [entry]
        was_exact, context.exact = context.exact, False
        heads, weaker, wrong = [entry.copy()], 0, None
        for period in range(1, LONGEST_PERIOD + 1):
            with context.ledger.silent():
                while len(heads) < 3 * period + 1:
                    trip = polynomials.fixed(len(heads) - 1)
                    heads.append(self._main(heads[-1], trip, entry))
            if not invariants.grows_regularly(heads, period):
                continue
            before, mark = len(context.free), context.mark()
            try:
                ends = self._ends(heads, period, entry)
            except Unsupported as problem:
                wrong = wrong or problem
            else:
                if len(context.free) == before:
                    context.periods.append((self.by, period))
                    return [self._joined(entry, ends)]
                weaker = weaker or period
            context.reset(mark)
        if not weaker:
            context.exact = was_exact
            raise wrong or Unsupported("what a loop carries has no period that was found")
        context.periods.append((self.by, weaker))
        return [self._joined(entry, self._ends(heads, weaker, entry))]

    def _ends(self, heads: list[WalkState], period: int, entry: WalkState) -> list[WalkState]:
        """The states at the ends of the loop, by an invariant with this period; what its trips
        show is in the ledger."""
        context = self.context
        found = [invariants.guessed(context, heads, r, period, self.trip) for r in range(period)]
        for each in found:
            each.path, each.mask = entry.path, entry.mask
        zero = partial(polynomials.substituted, name=self.name, by=polynomials.ZERO)
        invariants.weaken(context, found[0], entry, zero)
        mark = context.mark()
        while True:
            ends, changed = self._round(found, entry)
            if not changed:
                return ends
            context.reset(mark)

    def _round(self, found: list[WalkState], entry: WalkState) -> tuple[list[WalkState], bool]:
        """One trip from each state of an invariant: the ends of the loop, and whether the
        invariant had to be weakened."""
        ends: list[WalkState] = []
        changed = False
        after = polynomials.add(self.trip, polynomials.fixed(1))
        next_ = partial(polynomials.substituted, name=self.name, by=after)
        for r, head in enumerate(found):
            gone = head.copy()
            gone.path = (*entry.path, *self._ended())
            ends.append(gone)
            going = head.branch()
            going.path = (*entry.path, self.goes_on(self.trip))
            self.context.ranged(going, self.at(after), ())
            for out in self.once(head, self.trip):
                if out.broken or (out.left and not self._can_go_on(out, after)):
                    ends.append(out)
                elif out.left:
                    raise Unsupported(f"trip {r} goes on after a break")
                else:
                    following = found[(r + 1) % len(found)]
                    changed |= invariants.weaken(self.context, following, out, next_)
        return ends, changed

    def _ended(self) -> tuple[Condition, ...]:
        """That the loop has each trip before this number, and ends there."""
        before = polynomials.subtract(self.trip, polynomials.fixed(1))
        went_on = conditions.any_of(conditions.is_zero(self.trip), self.goes_on(before))
        return conditions.negated(self.goes_on(self.trip)), went_on

    def _can_go_on(self, state: WalkState, after: Polynomial) -> bool:
        claim = conditions.negated(self.goes_on(after))
        return self.context.theory.ask(state.path, claim).status != "proved"

    def _main(self, head: WalkState, trip: Polynomial, entry: WalkState) -> WalkState:
        """The state after one trip that no break ended."""
        outs = [out for out in self.once(head, trip) if not out.left]
        if len(outs) != 1:
            raise Unsupported("a loop whose trips end in several ways")
        (out,) = outs
        self._forget_inner(out, entry)
        out.path = entry.path
        return out

    def _forget_ended(self, state: WalkState) -> None:
        """Removes the variables of scopes that have ended."""
        ended = self.scope.has_ended
        state.slots = {key: value for key, value in state.slots.items() if not ended(key)}
        state.registers = {
            place: value for place, value in state.registers.items() if not ended(place[0])
        }

    def _forget_inner(self, state: WalkState, entry: WalkState) -> None:
        """Removes the variables of the body."""
        state.slots = {key: value for key, value in state.slots.items() if key in entry.slots}
        state.registers = {
            key: value for key, value in state.registers.items() if key in entry.registers
        }

    # ---- the end ----

    def _joined(self, entry: WalkState, ends: list[WalkState]) -> WalkState:
        """One state for all ends of the loop, with only what they have in common."""
        for end in ends:
            self._forget_inner(end, entry)
            self.complete(end)
        first, *others = ends
        for other in others:
            invariants.weaken(self.context, first, other, lambda form: form)
        first.path, first.broken, first.left = entry.path, False, entry.left
        return first

    def complete(self, end: WalkState) -> None:
        """Totals that end where the loop does end there by name."""
        total_ends.complete(self.context, end, self.stop)
