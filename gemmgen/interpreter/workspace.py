"""The memory that blocks of one launch share: what one wrote, another sees once both have counted.

A count releases what its block wrote before it, and acquires what was released on the same counter
before; vector clocks say what happens before what.  Two accesses of an element by different blocks
without that order are a ``Trap``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from gemmgen.calling.launches import Order
from gemmgen.interpreter.checked_memory import Elements, FlatMemory, poisoned
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.expressions import converted
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import CountArrival
from gemmgen.numerics.operators import Bools, Ints, Value


def _count_arrival(node: CountArrival, code: Code) -> Step:
    chosen, last = code.expression(node.chosen).run, code.expression(node.last).run
    counters, index = code.element(node.counter)
    frame, number = code.scope.frame, code.scope.variable(node.name, "bool").number
    machine = code.machine

    def step(mask: Mask) -> None:
        if not node.alone:
            machine.barrier(mask)
        every = machine.lanes.every(chosen(mask)).astype(np.bool_)
        ones = every if mask is None else every & mask
        found = counters.count(index(mask), cast(int, last(mask)), ones)
        frame[number] = np.logical_and(found, ones) if node.alone else found

    return step


def _atomic_add(node: Instruction, code: Code) -> Step:
    target, value = node.operands
    memory, index = code.element(target)
    run = converted(code.expression(value), memory.kind).run
    return lambda mask: memory.add(index(mask), run(mask), mask)


NODES: Statements = {CountArrival: _count_arrival, "add": _atomic_add}


def in_order(numbers: Iterable[int], order: Order) -> list[int]:
    """``numbers`` as blocks come: shuffled ones always in the same way."""
    found = sorted(numbers, reverse=order == "descending")
    if order == "shuffled":
        random.Random(len(found)).shuffle(found)
    return found


@dataclass
class LaunchState:
    """What the blocks of a launch have counted, and what they share."""

    order: Order
    blocks: int
    counters: dict[str, Ints] = field(default_factory=dict[str, Ints])
    spaces: dict[str, Elements] = field(default_factory=dict[str, Elements])
    writers: dict[str, Ints] = field(default_factory=dict[str, Ints])
    """For each element the number of the block that wrote it last, from 1; 0 for none."""
    epochs: dict[str, Ints] = field(default_factory=dict[str, Ints])
    """And how often that block had counted by then."""
    arrivals: dict[tuple[str, int], list[int]] = field(
        default_factory=dict[tuple[str, int], list[int]]
    )
    """The blocks that counted, by counter."""
    clocks: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    """The vector clock of each block that counted: how often each block had counted before."""

    @staticmethod
    def of(
        interface: Interface, extents: dict[str, int], order: Order, blocks: int = 1
    ) -> LaunchState:
        """Fresh memory for a launch of this many ``blocks``."""
        state = LaunchState(order, blocks)
        for param in (p for p in interface.scratch if not p.is_prepared):
            count = interface.scratch_elements(param, extents)
            if param.kind == "counter":
                state.counters[param.name] = np.zeros(count, np.int64)
                continue
            space = state.spaces[param.name] = poisoned(count, param.dtype)
            if param.zeroed:
                space.fill(0)
            state.writers[param.name] = np.zeros(count, np.int64)
            state.epochs[param.name] = np.zeros(count, np.int64)
        return state

    def memory(self, param: Param, lanes: Lanes) -> FlatMemory:
        """The memory of a parameter, as some blocks see it."""
        if param.kind == "counter":
            return Counters(param.name, self, lanes)
        return Workspace(param, self, lanes)

    def count(self, counter: str, index: int, last: int, block: int) -> bool:
        """Counts ``block``; whether the counter has come to ``last``, and restarts."""
        counts, arrivals = self.counters[counter], self.arrivals.setdefault((counter, index), [])
        mine = self.clocks.setdefault(block, {})
        for other in arrivals:
            for known, count in self.clocks[other].items():
                mine[known] = max(count, mine.get(known, 0))
        mine[block] = self.epoch(block) + 1
        arrivals.append(block)
        before = int(counts[index])
        counts[index] = 0 if before >= last else before + 1
        return before == last

    def epoch(self, block: int) -> int:
        """How often ``block`` has counted."""
        return self.clocks.get(block, {}).get(block, 0)

    def check_left(self, interface: Interface) -> None:
        """The next launch needs zeros in what must be zero."""
        for param in (p for p in interface.scratch if p.zeroed):
            left = (self.counters | self.spaces)[param.name]
            if left.any():
                at = int(np.flatnonzero(left)[0])
                raise Trap(param.name, "the launch", at, f"is left at {left[at]}, not zero")


class Counters(FlatMemory):
    """Counters, one a tile; only ``LaunchState.count`` touches them."""

    def __init__(self, name: str, state: LaunchState, lanes: Lanes):
        super().__init__(name, "f32", poisoned(state.counters[name].size, "f32"), lanes)
        self.state = state

    def count(self, index: Index, last: int, mask: Bools) -> Bools:
        """Counts the blocks of the lanes in ``mask``, one each; True in all lanes of a block that
        finds ``last`` counted before."""
        lanes = self.lanes
        chosen = {int(lane) // lanes.threads: int(lane) for lane in np.flatnonzero(mask)}
        found = np.zeros((lanes.blocks, lanes.threads), np.bool_)
        for block in in_order(chosen, self.state.order):
            at = index if isinstance(index, int) else int(index[chosen[block]])
            if not 0 <= at < self.size:
                raise self.trap(chosen[block], at, f"out of bounds of {self.size} counters")
            found[block] = self.state.count(self.name, at, last, lanes.first + block)
        return found.reshape(-1)


class Workspace(FlatMemory):
    """Memory that blocks write and read one after another."""

    def __init__(self, param: Param, state: LaunchState, lanes: Lanes):
        super().__init__(param.name, param.dtype, state.spaces[param.name], lanes)
        self.state, self.zeroed = state, param.zeroed
        self.writers, self.epochs = state.writers[param.name], state.epochs[param.name]
        self.blocks = np.repeat(np.arange(lanes.first, lanes.first + lanes.blocks), lanes.threads)

    def load(self, index: Index, mask: Mask) -> Value:
        found = super().load(index, mask)
        offsets, blocks = self.active(index, mask), self.active(self.blocks, mask)
        self._check_order(offsets, blocks, mask, "read")
        return found

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        offsets, blocks = self.active(index, mask), self.active(self.blocks, mask)
        self.check(offsets, mask)
        self._check_order(offsets, blocks, mask, "written")
        super().store(index, value, mask)
        self._record_writers(offsets, blocks)

    def add(self, index: Index, value: Value, mask: Mask) -> None:
        """An atomic addition: blocks may come in any order."""
        offsets, blocks = self.active(index, mask), self.active(self.blocks, mask)
        self.check(offsets, mask)
        if not self.zeroed:
            self._check_order(offsets, blocks, mask, "added to")
        every = np.broadcast_to(np.asarray(value, self.data.dtype), self.lanes.count)
        for at in self._in_turn(blocks):
            lanes = at if mask is None else np.flatnonzero(mask)[at]
            self.data[offsets[at]] += every[lanes]
        self._record_writers(offsets, blocks)

    def _record_writers(self, offsets: Ints, blocks: Ints) -> None:
        self.writers[offsets] = blocks + 1
        first = self.lanes.first
        epochs = [self.state.epoch(first + block) for block in range(self.lanes.blocks)]
        self.epochs[offsets] = np.array(epochs)[blocks - first]

    def _in_turn(self, blocks: Ints) -> list[Ints]:
        """The indices of each block's lanes, block by block as they come."""
        numbers = in_order((int(b) for b in np.unique(blocks)), self.state.order)
        return [cast(Ints, np.flatnonzero(blocks == number)) for number in numbers]

    def _check_order(self, offsets: Ints, blocks: Ints, mask: Mask, done: str) -> None:
        writers = self.writers[offsets]
        nothing = writers == 0
        if done == "read" and not self.zeroed:
            self.refuse(nothing, offsets, mask, "read before any block writes it")
        other = np.flatnonzero(~nothing & (writers != blocks + 1))
        if not other.size:
            return
        pairs = np.stack((writers[other] - 1, self.epochs[offsets[other]], blocks[other]))
        kinds, which = np.unique(pairs, axis=1, return_inverse=True)
        is_hidden = [not self._happens_before(*kind) for kind in kinds.T.tolist()]
        hidden = np.zeros(len(offsets), np.bool_)
        hidden[other] = np.array(is_hidden)[which.reshape(-1)]
        description = f"{done} with no order after another block's write"
        self.refuse(hidden, offsets, mask, description)

    def _happens_before(self, writer: int, epoch: int, block: int) -> bool:
        """Whether ``writer`` has counted since, and ``block`` after that."""
        return self.state.clocks.get(block, {}).get(writer, 0) > epoch
