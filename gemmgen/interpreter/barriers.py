"""Barriers in shared memory (mbarrier) and the copies of the copy engine, interpreted.

When a copy lands, between its issue and the end of the phase that counts it, the hardware chooses.
Late, its target is poison until some thread's wait needs its bytes; early, it holds the copy at
once.  A phase ends when no arrival and no byte is missing.  A wait for a phase that nothing under
way ends is a ``Trap``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from gemmgen.calling.launches import Landing
from gemmgen.interpreter.boxes import boxes_of, loaded
from gemmgen.interpreter.checked_memory import FlatMemory
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Boxes, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.phases import BarrierState, BoxLanding
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap
from gemmgen.interpreter.together import Together
from gemmgen.interpreter.turns import Waiting
from gemmgen.ir.barriers import BarrierArray, ExpectBytes, FenceBarriers, InitBarrier, WaitBarrier
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.duties import ArriveBarrier
from gemmgen.ir.expr import Element
from gemmgen.ir.tensor_map import LANDS_AT
from gemmgen.ir.thread_code import LoadBox
from gemmgen.numerics.operators import Value

MOST_BYTES = 2**20 - 1
"""Bytes that a phase may expect at once (PTX ISA, tx-count of an mbarrier)."""


def _array(node: BarrierArray, code: Code) -> None:
    code.machine.barriers.declare(node)


def _index(barrier: Element, code: Code) -> tuple[str, Step]:
    (index,) = barrier.indices
    return barrier.buffer, code.expression(index).run


def _init(node: InitBarrier, code: Code) -> Step:
    name, index = _index(node.barrier, code)
    barriers = code.machine.barriers
    arrivals = cast(int, code.expression(node.arrivals).known)
    return lambda mask: barriers.init(name, cast(Index, index(mask)), arrivals, mask)


def _fence(node: FenceBarriers, code: Code) -> Step:
    return code.machine.barriers.fence


def _expect(node: ExpectBytes, code: Code) -> Step:
    name, index = _index(node.barrier, code)
    barriers, count = code.machine.barriers, cast(int, code.expression(node.bytes).known)
    return lambda mask: barriers.expect(name, cast(Index, index(mask)), count, mask)


def _arrive(node: ArriveBarrier, code: Code) -> Step:
    name, index = _index(node.barrier, code)
    barriers = code.machine.barriers
    return lambda mask: barriers.arrive(name, cast(Index, index(mask)), mask)


def _wait(node: WaitBarrier, code: Code) -> Step:
    name, index = _index(node.barrier, code)
    barriers, parity = code.machine.barriers, code.expression(node.parity).run
    return lambda mask: barriers.wait(name, cast(Index, index(mask)), parity(mask), mask)


def _load_box(node: LoadBox, code: Code) -> Step:
    name, index = _index(node.barrier, code)
    target, to = code.element(node.target)
    starts = [code.expression(e).run for e in node.at]
    boxes, barriers = boxes_of(node.tensor, code), code.machine.barriers

    def step(mask: Mask) -> None:
        at = [cast(Index, start(mask)) for start in starts]
        barriers.load(boxes, at, target, to(mask), (name, cast(Index, index(mask))), mask)

    return step


NODES: Statements = {
    BarrierArray: _array,
    InitBarrier: _init,
    FenceBarriers: _fence,
    ExpectBytes: _expect,
    ArriveBarrier: _arrive,
    WaitBarrier: _wait,
    LoadBox: _load_box,
}


class CheckedBarriers:
    """The barriers of some blocks, each with a state of its own."""

    def __init__(self, lanes: Lanes, together: Together, landing: Landing):
        self.lanes, self.late = lanes, landing == "late"
        self.known, self._turns = together.barriers, together.turns
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

    def arrive(self, name: str, index: Index, mask: Mask) -> None:
        self.expect(name, index, 0, mask)

    def expect(self, name: str, index: Index, count: int, mask: Mask) -> None:
        for lane, at in self._each(index, mask):
            barrier = self._of(name, lane, at)
            barrier.bytes += count
            barrier.pending -= 1
            if barrier.pending < 0 or barrier.bytes > MOST_BYTES:
                excess = "one arrival too many" if barrier.pending < 0 else "too many bytes"
                raise self._trap(name, lane, at, f"{excess} in phase {barrier.phase}")
            barrier.settle()

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
        self._turns.wait(Waiting(lambda: not lasting(), name, at, self.lanes.name(lane), what))

    def load(
        self,
        boxes: Boxes,
        at: Sequence[Index],
        target: Memory,
        to: Index,
        barrier: tuple[str, Index],
        mask: Mask,
    ) -> None:
        assert isinstance(target, FlatMemory)
        starts = [self.lanes.every(start) for start in at]
        addresses, (name, index) = self.lanes.every(to), barrier
        for lane, number in self._each(index, mask):
            counted = self._of(name, lane, number)
            if not counted.fenced:
                raise self._trap(name, lane, number, "the copy engine does not see it yet")
            values = loaded(boxes, [int(start[lane]) for start in starts], lane)
            first = int(addresses[lane])
            if first * BYTES[target.dtype] % LANDS_AT:
                raise target.trap(lane, first, f"no box lands there: no multiple of {LANDS_AT}")
            target.check(np.array([first, first + len(values) - 1]), None)
            base = 0 if target.base is None else int(target.base[lane])
            landing = BoxLanding(target, base + first, values, lane)
            self._issue(counted, landing)

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

    def _key(self, name: str, lane: int, at: int) -> tuple[str, int, int]:
        if not 0 <= at < self.sizes[name]:
            raise self._trap(name, lane, at, f"out of bounds of {self.sizes[name]} barriers")
        return name, lane // self.lanes.threads, at

    def _of(self, name: str, lane: int, at: int) -> BarrierState:
        found = self.known.get(self._key(name, lane, at))
        if found is None:
            raise self._trap(name, lane, at, "used before it is initialized")
        return found

    def _trap(self, name: str, lane: int, at: int, description: str) -> Trap:
        return Trap(name, self.lanes.name(lane), at, description)
