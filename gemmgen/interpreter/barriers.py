"""Barriers in shared memory (mbarrier) and the copies of TMA, interpreted.

When a copy lands, between its issue and the end of the phase that counts it, the hardware chooses.
Late, its target is poison until some thread's wait needs its bytes; early, it holds the copy at
once.  A phase ends when no arrival and no byte is missing.  A wait for a phase that nothing under
way ends is a ``Trap``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from gemmgen.calling.launches import Landing
from gemmgen.interpreter.boxes import boxes_of, lies_at, loaded
from gemmgen.interpreter.checked_memory import FlatMemory
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Boxes, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.phases import BarrierState, BoxLanding
from gemmgen.interpreter.scheduler import Waiting
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap
from gemmgen.interpreter.together import Together
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.tensor_map import LANDS_AT
from gemmgen.numerics.operators import Bools, Value

MOST_BYTES = 2**20 - 1
"""Bytes that a phase may expect at once (PTX ISA, tx-count of an mbarrier)."""


def _array(node: BarrierArray, code: Code) -> None:
    code.machine.barriers.declare(node)


def _index(barrier: Expr, code: Code) -> tuple[str, Step]:
    assert isinstance(barrier, Element)
    (index,) = barrier.indices
    return barrier.buffer, code.expression(index).run


def _init(node: Instruction, code: Code) -> Step:
    barrier, count = node.operands
    (name, index), barriers = _index(barrier, code), code.machine.barriers
    arrivals = cast(int, code.expression(count).known)
    return lambda mask: barriers.init(name, cast(Index, index(mask)), arrivals, mask)


def _fence(node: Instruction, code: Code) -> Step:
    return code.machine.barriers.fence


def _expect(node: Instruction, code: Code) -> Step:
    barrier, size = node.operands
    name, index = _index(barrier, code)
    barriers, count = code.machine.barriers, cast(int, code.expression(size).known)
    return lambda mask: barriers.expect(name, cast(Index, index(mask)), count, mask)


def _arrive(node: Instruction, code: Code) -> Step:
    barrier, *rank = node.operands
    (name, index), barriers = _index(barrier, code), code.machine.barriers
    if not rank:
        return lambda mask: barriers.arrive(name, cast(Index, index(mask)), mask)
    block = code.expression(rank[0]).run
    return lambda mask: barriers.arrive(name, cast(Index, index(mask)), mask, block(mask))


def _wait(node: Instruction, code: Code) -> Step:
    barrier, of_phase = node.operands
    (name, index), barriers = _index(barrier, code), code.machine.barriers
    parity, executing = code.expression(of_phase).run, _executing(node, code)

    def step(mask: Mask) -> None:
        some = executing(mask)
        barriers.wait(name, cast(Index, index(some)), parity(some), some)

    return step


def _test(node: Instruction, code: Code) -> Step:
    barrier, of_phase = node.operands
    (name, index), barriers = _index(barrier, code), code.machine.barriers
    parity, executing = code.expression(of_phase).run, _executing(node, code)
    frame, number = code.scope.frame, code.scope.variable(node.result, "bool").number

    def step(mask: Mask) -> None:
        some = executing(mask)
        frame[number] = barriers.test(name, cast(Index, index(some)), parity(some), some)

    return step


def _executing(node: Instruction, code: Code) -> Callable[[Mask], Mask]:
    """The lanes of a mask for which the predicate holds."""
    if node.predicate is None:
        return lambda mask: mask
    lanes, predicate = code.machine.lanes, code.expression(node.predicate).run

    def executing(mask: Mask) -> Mask:
        holds = lanes.every(predicate(mask)).astype(np.bool_)
        return holds if mask is None else holds & mask

    return executing


def _load_box(node: Instruction, code: Code) -> Step:
    place, of_map, barrier, *at = node.operands
    (name, index), (target, to) = _index(barrier, code), code.element(place)
    blocks = code.expression(at.pop()).run if node.name == "multicast_box" else None
    starts = [code.expression(e).run for e in at]
    boxes, barriers = boxes_of(of_map, code), code.machine.barriers

    def step(mask: Mask) -> None:
        at = [cast(Index, start(mask)) for start in starts]
        counted = name, cast(Index, index(mask))
        sharers = None if blocks is None else blocks(mask)
        barriers.load(boxes, at, target, to(mask), counted, mask, sharers)

    return step


NODES: Statements = {
    BarrierArray: _array,
    "init_barrier": _init,
    "fence_barrier_init": _fence,
    "expect_bytes": _expect,
    "arrive": _arrive,
    "arrive_at": _arrive,
    "try_wait": _wait,
    "test_wait": _test,
    "load_box": _load_box,
    "multicast_box": _load_box,
}


class CheckedBarriers:
    """The barriers of some blocks, each with its own state."""

    def __init__(self, lanes: Lanes, together: Together, landing: Landing):
        self.lanes, self.late = lanes, landing == "late"
        self.known, self._scheduler = together.barriers, together.scheduler
        self.sizes: dict[str, int] = {}

    def declare(self, array: BarrierArray) -> None:
        self.sizes[array.name] = array.size

    def init(self, name: str, index: Index, arrivals: int, mask: Mask) -> None:
        for lane, at in self._each(index, mask):
            key = self._key(name, lane, at)
            if key in self.known:
                raise self._trap(name, lane, at, "initialized twice")
            self.known[key] = BarrierState(arrivals, arrivals)

    def fence(self, mask: Mask) -> None:
        blocks = {lane // self.lanes.threads for lane, _ in self._each(0, mask)}
        for (_, block, _), barrier in self.known.items():
            barrier.fenced |= block in blocks

    def arrive(self, name: str, index: Index, mask: Mask, block: Value | None = None) -> None:
        if block is None:
            self.expect(name, index, 0, mask)
            return
        ranks = self.lanes.every(block)
        for lane, at in self._each(index, mask):
            peer = self._peer(name, lane, at, int(ranks[lane]))
            self._arrive(self._of(name, lane, at, peer), (name, lane, at), 0)

    def expect(self, name: str, index: Index, count: int, mask: Mask) -> None:
        for lane, at in self._each(index, mask):
            self._arrive(self._of(name, lane, at), (name, lane, at), count)

    def _arrive(self, barrier: BarrierState, where: tuple[str, int, int], count: int) -> None:
        """One arrival, and this many bytes more."""
        barrier.bytes += count
        barrier.pending -= 1
        if barrier.pending < 0 or barrier.bytes > MOST_BYTES:
            excess = "one arrival too many" if barrier.pending < 0 else "too many bytes"
            raise self._trap(*where, f"{excess} in phase {barrier.phase}")
        barrier.settle()

    def _peer(self, name: str, lane: int, at: int, rank: int) -> int:
        """The block of this rank in a lane's cluster."""
        if not 0 <= rank < self.lanes.cluster:
            wrong = f"of block {rank} of a cluster of {self.lanes.cluster}"
            raise self._trap(name, lane, at, wrong)
        return self.lanes.peer(lane, rank)

    def wait(self, name: str, index: Index, parity: Value, mask: Mask) -> None:
        every = self.lanes.every(parity)
        awaited: dict[tuple[BarrierState, int], tuple[int, int]] = {}
        for lane, at in self._each(index, mask):
            awaited.setdefault((self._of(name, lane, at), int(every[lane])), (lane, at))
        if not awaited:
            return

        def lasting() -> list[tuple[BarrierState, int]]:
            return [one for one in awaited if not one[0].ends(one[1])]

        def what() -> str:
            barrier, wanted = lasting()[0]
            _, at = awaited[barrier, wanted]
            return f"{name}[{at}], parity {wanted}: {barrier.lacks()}"

        lane, at = next(iter(awaited.values()))
        self._scheduler.wait(Waiting(lambda: not lasting(), name, at, self.lanes.name(lane), what))

    def test(self, name: str, index: Index, parity: Value, mask: Mask) -> Bools:
        """For each lane whether it takes part and the phase has ended; no box lands for that."""
        every, found = self.lanes.every(parity), np.zeros(self.lanes.count, np.bool_)
        for lane, at in self._each(index, mask):
            found[lane] = self._of(name, lane, at).has_ended(int(every[lane]))
        return found

    def load(
        self,
        boxes: Boxes,
        at: Sequence[Index],
        target: Memory,
        to: Index,
        barrier: tuple[str, Index],
        mask: Mask,
        blocks: Value | None = None,
    ) -> None:
        assert isinstance(target, FlatMemory)
        starts = [self.lanes.every(start) for start in at]
        addresses, (name, index) = self.lanes.every(to), barrier
        for lane, number in self._each(index, mask):
            values = loaded(boxes, [int(start[lane]) for start in starts], lane)
            first = int(addresses[lane])
            if first * BYTES[target.dtype] % LANDS_AT:
                raise target.trap(lane, first, f"no box lands there: no multiple of {LANDS_AT}")
            places = lies_at(boxes, target, first)
            target.check(places, None)
            for block in self._targets(name, lane, number, blocks):
                counted = self._of(name, lane, number, block)
                if not counted.fenced:
                    raise self._trap(name, lane, number, "TMA does not see it yet")
                landing = BoxLanding(target, block * target.size + places, values, lane)
                self._issue(counted, landing)

    def _targets(self, name: str, lane: int, at: int, blocks: Value | None) -> Sequence[int]:
        """The blocks that a box goes to: a lane's own, or those whose bits are set."""
        if blocks is None:
            return (lane // self.lanes.threads,)
        bits = int(self.lanes.every(blocks)[lane])
        ranks = [rank for rank in range(bits.bit_length()) if bits >> rank & 1]
        if not ranks:
            raise self._trap(name, lane, at, "of no block of the cluster")
        return [self._peer(name, lane, at, rank) for rank in ranks]

    def _issue(self, barrier: BarrierState, landing: BoxLanding) -> None:
        if self.late:
            landing.spoil()
            barrier.landing.append(landing)
        else:
            barrier.count(landing)

    def _each(self, index: Index, mask: Mask) -> Iterator[tuple[int, int]]:
        """The lanes that take part, each with its index."""
        every = self.lanes.every(index)
        lanes = range(self.lanes.count) if mask is None else np.flatnonzero(mask)
        return ((int(lane), int(every[lane])) for lane in lanes)

    def _key(self, name: str, lane: int, at: int, block: int | None = None) -> tuple[str, int, int]:
        if not 0 <= at < self.sizes[name]:
            raise self._trap(name, lane, at, f"out of bounds of {self.sizes[name]} barriers")
        return name, lane // self.lanes.threads if block is None else block, at

    def _of(self, name: str, lane: int, at: int, block: int | None = None) -> BarrierState:
        """The barrier of a lane's own block, or of another one."""
        found = self.known.get(self._key(name, lane, at, block))
        if found is None:
            raise self._trap(name, lane, at, "used before it is initialized")
        return found

    def _trap(self, name: str, lane: int, at: int, description: str) -> Trap:
        return Trap(name, self.lanes.name(lane), at, description)
