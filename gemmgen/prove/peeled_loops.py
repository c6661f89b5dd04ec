"""Loops of unknown length in kernels with mbarriers, and those that do something in some trips.

The first trips are walked one by one, until the state before trip ``n + P`` has the order of
accesses and the phases of the one before trip ``n``.  What differs is taken to grow as much in any
``P`` trips; that is proved by induction over rounds of ``P`` trips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import gcd, lcm

from gemmgen.ir.control import For, If
from gemmgen.ir.expr import Binary, Int, Var
from gemmgen.ir.thread_code import Node, inner
from gemmgen.ir.traversal import inside, names_in
from gemmgen.prove import condition_queries, conditions, data, equal_orders, invariants, polynomials
from gemmgen.prove.conditions import ChosenInteger, Condition, Integer
from gemmgen.prove.data import Data, Pick, TermTotals, Total
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.loops import TripLoop
from gemmgen.prove.mbarriers import with_guards
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import Value, WalkState
from gemmgen.prove.walk_context import Found, WalkContext

MOST_TRIPS = 160
"""Trips that are walked until a period is found."""


def differs_by_trip(node: For[Node]) -> bool:
    """Whether a condition in the loop's body is about the remainder of its variable."""

    def is_remainder(expr: object) -> bool:
        return isinstance(expr, Binary) and (
            (expr.op == "%" and node.variable in names_in(expr.left))
            or is_remainder(expr.left)
            or is_remainder(expr.right)
        )

    def is_in(nodes: Sequence[Node]) -> bool:
        return any(
            (isinstance(one, If) and is_remainder(one.condition)) or is_in(inner(one))
            for one in nodes
        )

    return is_in(node.body)


def remainder_period(context: WalkContext, node: For[Node], by: int) -> int:
    """After how many trips the remainders repeat that a loop's body computes of its variable."""
    constants, found = {one.name: one.value for one in context.kernel.constants}, 1
    for each in inside(node.body):
        if isinstance(each, Binary) and each.op == "%" and node.variable in names_in(each.left):
            match each.right:
                case Int(value):
                    divisor = value
                case Var(name) if name in constants:
                    divisor = constants[name]
                case _:
                    continue
            found = lcm(found, divisor // gcd(divisor, by))
    return found


class PeeledLoop(TripLoop):
    """A loop whose first trips are walked one by one."""

    def run(self, entry: WalkState) -> list[WalkState]:
        context = self.context
        self._forget_ended(entry)
        if self._contradicts(entry, self.goes_on(polynomials.ZERO)):
            self._decide_guards(entry)
            return [entry]
        heads, marks = [self._before(entry, polynomials.ZERO)], [context.mark()]
        without, ends = self._left(entry, polynomials.ZERO), list[WalkState]()
        ends_before = [0]
        while len(heads) <= MOST_TRIPS:
            found = self._repeated(heads)
            if found is not None:
                n, period = found
                rounds = self._proved(marks[n], partial(self._rounds, heads, n, period, entry))
                context.periods.append((self.by, period))
                every = [*ends[: ends_before[n]], *rounds]
                if context.partials is not None:  # a part that has no products adds zero
                    every, without = [*every, *without], []
                equal_orders.joined_order(every)
                after = self._joined(entry, every)
                if without:
                    after.path = (*entry.path, self.goes_on(polynomials.ZERO))
                return [*without, after]
            trip = polynomials.fixed(len(heads) - 1)
            after = polynomials.fixed(len(heads))
            going, gone = self._trip(heads[-1], trip, after, entry)
            ends += gone
            heads.append(going)
            marks.append(context.mark())
            ends_before.append(len(ends))
        raise Unsupported("what a loop carries has no period that was found")

    def _proved(self, mark: Found, rounds: Callable[[], list[WalkState]]) -> list[WalkState]:
        """What rounds show, in place of what was found since ``mark`` in trips that they include;
        violations of such a trip are certain, and kept."""
        context = self.context
        before, count = context.mark(), len(mark[0].violations)
        certain = [one for one in before[0].violations[count:] if one.certain]
        context.reset(mark)
        context.exact = False
        context.ledger.violations.extend(certain)
        try:
            return rounds()
        except Unsupported:
            context.reset(before)
            raise

    def _repeated(self, heads: list[WalkState]) -> tuple[int, int] | None:
        """The last trip's head and an earlier one with the same order, phases and remainders."""
        last, period = heads[-1], remainder_period(self.context, self.node, self.by)
        for n in range(len(heads) - 1 - period, -1, -period):
            if _alike(heads[n], last):
                return n, len(heads) - 1 - n
        return None

    def _trip(
        self, head: WalkState, trip: Polynomial, after: Polynomial, entry: WalkState
    ) -> tuple[WalkState, list[WalkState]]:
        """The state before the next trip, and those in which there is none."""
        here = head.branch()
        here.path = (*head.path, self.goes_on(trip))
        self.context.ranged(here, self.at(after), ())
        going: list[WalkState] = []
        gone: list[WalkState] = []
        for out in self.once(head, trip):
            if out.broken or out.left:
                raise Unsupported("a loop that is left early, in a kernel with TMA")
            more = self.goes_on(after)
            if not self._contradicts(out, more):
                left = out.copy()
                left.path = (*out.path, more)
                going.append(self._settled(left, entry))
            if not self._contradicts(out, conditions.negated(more)):
                out.path = (*out.path, conditions.negated(more))
                gone.append(self._settled(out, entry, keep_path=True))
        if len(going) != 1:
            raise Unsupported("a loop whose trips end in several ways")
        return going[0], gone

    def _contradicts(self, state: WalkState, claim: Condition) -> bool:
        wrong = conditions.negated(claim)
        if condition_queries.is_stated(state.path, wrong):
            return True
        return self.context.theory.holds(state.path, wrong, 1.0)

    def _settled(self, state: WalkState, entry: WalkState, keep_path: bool = False) -> WalkState:
        """``state`` with what its path decides, without the body's variables."""
        self._forget_inner(state, entry)
        resolve(state, state.path)
        if not keep_path:
            state.path = entry.path
        else:
            self._decide_guards(state)
        equal_orders.normalize(state)
        return state

    def _decide_guards(self, state: WalkState) -> None:
        if state.barriers is not None:
            with_guards(state.barriers, partial(self._decided, state))
            equal_orders.end_unissued(state)

    def _decided(self, state: WalkState, guard: Data) -> Data:
        """A guard that cannot hold in the calls of a state."""
        if isinstance(guard, Pick) and self._contradicts(state, guard.condition):
            return guard.no
        return guard

    def _before(self, entry: WalkState, trip: Polynomial) -> WalkState:
        """The state before a trip that there is."""
        head = entry.copy()
        resolve(head, (*head.path, self.goes_on(trip)))
        equal_orders.normalize(head)
        return head

    def _left(self, entry: WalkState, trip: Polynomial) -> list[WalkState]:
        """The state at the end, if there is no trip."""
        if self._contradicts(entry, conditions.negated(self.goes_on(trip))):
            return []
        gone = entry.copy()
        gone.path = (*gone.path, conditions.negated(self.goes_on(trip)))
        resolve(gone, gone.path)
        self._decide_guards(gone)
        return [gone]

    def _rounds(
        self, heads: list[WalkState], n: int, period: int, entry: WalkState
    ) -> list[WalkState]:
        """The ends of the loop in trip ``n`` or later."""
        context, first = self.context, heads[n]
        known = invariants.between(context, first, heads[n + period], self.trip)
        known.path, known.mask = entry.path, entry.mask
        zero = partial(polynomials.substituted, name=self.name, by=polynomials.ZERO)
        invariants.weaken(context, known, first, zero)
        later = polynomials.add(self.trip, polynomials.fixed(1))
        next_ = partial(polynomials.substituted, name=self.name, by=later)
        mark = context.mark()
        while True:
            ends: list[WalkState] = []
            head = known.copy()
            head.path = (*entry.path, self.goes_on(self._number(n)))
            resolve(head, head.path)
            head.path = entry.path
            for r in range(period):
                trip, after = self._numbers(n + r, period), self._numbers(n + r + 1, period)
                head, gone = self._trip(head, trip, after, entry)
                ends += gone
            if not equal_orders.same_order(known, head):
                raise Unsupported("accesses whose order differs from round to round")
            if not invariants.weaken(context, known, head, next_):
                return ends
            context.reset(mark)

    def _number(self, n: int) -> Polynomial:
        return self._numbers(n, 1)

    def _numbers(self, n: int, period: int) -> Polynomial:
        """Trip ``n`` of the round."""
        return polynomials.add(polynomials.scale(self.trip, period), polynomials.fixed(n))


def _is_total(value: Data) -> bool:
    return isinstance(value, Total | TermTotals)


def _alike(one: WalkState, other: WalkState) -> bool:
    """Whether the numbers that are carried are equal, which accumulators have a sum, and the order
    of accesses and the phases."""
    for key, value in one.slots.items():
        own = value.number() if isinstance(value, Polynomial) else None
        there = other.slots.get(key)
        if own is not None and isinstance(there, Polynomial) and there.number() != own:
            return False
    for place, value in one.registers.items():
        there = other.registers.get(place)
        if there is not None and _is_total(value) != _is_total(there):
            return False
    return equal_orders.same_order(one, other)


def resolve(state: WalkState, path: tuple[Condition, ...]) -> None:
    """Decides what depends on conditions that ``path`` states."""

    def decided(condition: Condition) -> bool | None:
        if condition_queries.is_stated(path, condition):
            return True
        if condition_queries.is_stated(path, conditions.negated(condition)):
            return False
        return None

    def of_data(value: Data) -> Data:
        if not isinstance(value, Pick):
            return value
        side = decided(value.condition)
        if side is None:
            return data.pick(value.condition, of_data(value.yes), of_data(value.no))
        return of_data(value.yes if side else value.no)

    def of_integer(value: Integer) -> Integer:
        if not isinstance(value, ChosenInteger):
            return value
        side = decided(value.condition)
        return value if side is None else of_integer(value.yes if side else value.no)

    def of_value(value: Value) -> Value:
        match value:
            case ChosenInteger():
                return of_integer(value)
            case Pick():
                return of_data(value)
            case _:
                return value

    for key, value in state.slots.items():
        state.slots[key] = of_value(value)
    for place, value in state.registers.items():
        state.registers[place] = of_data(value)
    if state.barriers is not None:
        with_guards(state.barriers, of_data)
