"""A machine that computes everything, and raises ``Trap`` when a thread does what it may not."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from gemmgen.calling.launches import Landing
from gemmgen.interpreter.async_copies import CheckedCopies
from gemmgen.interpreter.async_products import CheckedMultiplies
from gemmgen.interpreter.barriers import CheckedBarriers
from gemmgen.interpreter.box_stores import CheckedStores
from gemmgen.interpreter.checked_memory import (
    Elements,
    FlatMemory,
    OutputMemory,
    Registers,
    poisoned,
)
from gemmgen.interpreter.expressions import NUMBERS
from gemmgen.interpreter.fragments import CheckedWarps
from gemmgen.interpreter.machine import Step, Trip, Trips
from gemmgen.interpreter.memory import KINDS, Memory
from gemmgen.interpreter.scope import Closure, Scope, known
from gemmgen.interpreter.simt import Index, Lanes, Mask, Trap, left_out
from gemmgen.interpreter.together import CLUSTER, NAMED, Together
from gemmgen.interpreter.workspace import LaunchState
from gemmgen.ir.control import Block, For
from gemmgen.ir.lane_matrices import OperandArray
from gemmgen.ir.lowered import SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.ir.warp_matrices import FragmentArray
from gemmgen.numerics.operators import Ints, Value

Argument = Elements | int | float


class CheckedMachine:
    """Some blocks of a launch, or the threads of one ``role`` of theirs; ``written`` has the
    thread that wrote each element of a tensor."""

    computes = True

    def __init__(
        self,
        lanes: Lanes,
        arguments: Mapping[str, Argument],
        written: Mapping[str, Ints],
        state: LaunchState,
        together: Together,
        landing: Landing,
        role: str | None = None,
    ):
        self.lanes, self.copies, self.warps = lanes, CheckedCopies(landing), CheckedWarps(lanes)
        self.barriers = CheckedBarriers(lanes, together, landing)
        self.stores = CheckedStores(lanes, landing)
        self.multiplies = CheckedMultiplies(lanes, landing)
        self._arguments, self._written, self._state = arguments, written, state
        self._together, self.role = together, role

    def builtins(self) -> Mapping[str, Index]:
        return self.lanes.builtins() | {"gridDim.x": self._state.blocks}

    def parameter(self, param: Param) -> Closure | Memory:
        if param.is_scratch and not param.is_prepared:
            return self._state.memory(param, self.lanes)
        value = self._arguments[param.name]
        if not isinstance(value, np.ndarray):
            return argument(param, value)
        if param.written:
            written = self._written[param.name]
            return OutputMemory(param.name, param.dtype, value, self.lanes, written)
        return FlatMemory(param.name, param.dtype, value, self.lanes)

    def shared(self, array: SharedArray) -> Memory:
        count = self.lanes.blocks * prod(array.sizes)
        data = self._together.memory.setdefault(array.name, poisoned(count, array.dtype))
        return FlatMemory(
            array.name, array.dtype, data, self.lanes, per_block=True, aligned=array.aligned
        )

    def registers(
        self, array: RegisterArray | FragmentArray | OperandArray, size: int
    ) -> tuple[Memory, Step | None]:
        dtype = "f32" if isinstance(array, FragmentArray) else array.dtype
        memory = Registers(array.name, dtype, size, self.lanes, zero=array.zero, wide=array.wide)
        return memory, memory.declare

    def barrier(self, mask: Mask) -> None:
        lane = left_out(mask, self.lanes.threads)
        if lane is not None:
            name = self.lanes.name(lane)
            raise Trap("barrier", name, 0, "not all threads of the block come to it, it is missed")
        if self.role is not None:
            self.sync(0, self.lanes.of_block, mask)

    def sync(self, number: int, threads: int, mask: Mask) -> None:
        if not 0 <= number < NAMED:
            first = 0 if mask is None else int(np.argmax(mask))
            raise Trap("barrier", self.lanes.name(first), number, f"a block has {NAMED} of them")
        self._together.named_barriers.sync(number, threads, self.lanes, mask)

    def meet_cluster(self, mask: Mask) -> None:
        lane = left_out(mask, self.lanes.threads * self.lanes.cluster)
        if lane is not None:
            name = self.lanes.name(lane)
            raise Trap("barrier", name, CLUSTER, "not all threads of the cluster come to its own")
        if self.role is not None:
            self._together.named_barriers.sync(CLUSTER, self.lanes.of_block, self.lanes, mask)

    def trips(self, loop: For[Node], scope: Scope) -> Trips:
        return every_trip

    def within(self, block: Block[Node], body: Step) -> Step:
        return body


def every_trip(trip: Trip, start: Value, stop: Value, step: Value, mask: Mask) -> None:
    """All trips of a loop, one after another."""
    i = 0
    while trip(i):
        i += 1


def argument(param: Param, value: float) -> Closure:
    """A number that a kernel is called with."""
    if param.kind != "scalar":
        return known(int(value), "int")
    kind = KINDS[param.dtype]
    return known(NUMBERS[kind](value), kind)
