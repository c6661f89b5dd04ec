"""Boxes that TMA stores from shared memory, interpreted.

When a box is read, between its issue and its lane's wait for its group, the hardware chooses.
Early, that is at once; late, at the wait: what was written there meanwhile shows.  A store that its
lane does not wait for is a ``Trap``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.calling.launches import Landing
from gemmgen.interpreter.boxes import boxes_of, lies_at, padding, places
from gemmgen.interpreter.checked_memory import FlatMemory, OutputMemory
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Boxes, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.tensor_map import LANDS_AT
from gemmgen.numerics.operators import Ints


def _store(node: Instruction, code: Code) -> Step:
    of_map, place, *at = node.operands
    source, first = code.element(place)
    starts = [code.expression(e).run for e in at]
    boxes, stores = boxes_of(of_map, code), code.machine.stores

    def step(mask: Mask) -> None:
        at = [cast(Index, start(mask)) for start in starts]
        stores.store(boxes, at, source, first(mask), mask)

    return step


def _commit(node: Instruction, code: Code) -> Step:
    return code.machine.stores.commit


def _await(node: Instruction, code: Code) -> Step:
    (pending,) = (code.expression(operand).known for operand in node.operands)
    return partial(code.machine.stores.wait, cast(int, pending))


NODES: Statements = {
    "store_box": _store,
    "commit_boxes": _commit,
    "await_boxes": _await,
}


@record
class _Leaving:
    """A box under way: the elements at ``read`` of a block's shared memory, to ``written``, and
    zeros to ``padding``."""

    source: FlatMemory
    read: Ints
    tensor: OutputMemory
    written: Ints
    padding: Ints
    lane: int

    def leave(self) -> None:
        self.tensor.data[self.written] = self.source.data[self.read]
        self.tensor.data[self.padding] = 0


class CheckedStores:
    """The stores of some lanes: those since a lane's last group, and its groups."""

    def __init__(self, lanes: Lanes, landing: Landing):
        self.lanes, self.late = lanes, landing == "late"
        self.issued: dict[int, list[_Leaving]] = {}
        self.groups: dict[int, list[list[_Leaving]]] = {}

    def store(
        self, boxes: Boxes, at: Sequence[Index], source: Memory, first: Index, mask: Mask
    ) -> None:
        assert isinstance(source, FlatMemory) and isinstance(boxes.tensor, OutputMemory)
        starts = [self.lanes.every(start) for start in at]
        addresses = self.lanes.every(first)
        for lane in self._lanes(mask):
            begin = int(addresses[lane])
            if begin * BYTES[source.dtype] % LANDS_AT:
                raise source.trap(lane, begin, f"no box leaves here: no multiple of {LANDS_AT}")
            corner = [int(start[lane]) for start in starts]
            inside, there = places(boxes, corner, lane)
            beyond = padding(boxes, corner, lane)
            lie = lies_at(boxes, source, begin)
            source.check(lie, None)
            boxes.tensor.claim(np.concatenate((there, beyond)), lane)
            base = 0 if source.base is None else int(source.base[lane])
            read = base + lie[inside]
            leaving = _Leaving(source, read, boxes.tensor, there, beyond, lane)
            self.issued.setdefault(lane, []).append(leaving)
            if not self.late:
                leaving.leave()

    def commit(self, mask: Mask) -> None:
        for lane in self._lanes(mask):
            self.groups.setdefault(lane, []).append(self.issued.pop(lane, []))

    def wait(self, pending: int, mask: Mask) -> None:
        for lane in self._lanes(mask):
            groups = self.groups.get(lane, [])
            while len(groups) > pending:
                for leaving in groups.pop(0):
                    if self.late:
                        leaving.leave()

    def end(self) -> None:
        """The threads leave the kernel; raises ``Trap`` if a box is under way."""
        groups = (group for groups in self.groups.values() for group in groups)
        for group in (*self.issued.values(), *groups):
            for leaving in group:
                at = int(leaving.read[0]) if leaving.read.size else 0
                raise leaving.source.trap(leaving.lane, at, "a store that is not waited for")

    def _lanes(self, mask: Mask) -> Sequence[int]:
        return range(self.lanes.count) if mask is None else np.flatnonzero(mask).tolist()
