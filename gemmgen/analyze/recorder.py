"""An interpreter that computes only addresses and conditions, and reports each memory access.

Accumulators and fragments are never computed: addresses and guards depend on integers alone, so
what is left of a kernel is its index arithmetic. No memory is needed either, which makes any shape
possible. If an epilogue chooses by such a float (``where(acc > 0, bias[n], 0)``), both sides are
taken to be read, as some threads of a warp will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import lcm
from typing import cast

import numpy as np

from gemmgen.analyze.accesses import See, SeeBoxes, Site, first_elements
from gemmgen.analyze.load_joining import trips_joined
from gemmgen.analyze.loop_periods import Trips, every_trip, inductions
from gemmgen.analyze.watched_memory import (
    Unwatched,
    Watch,
    Watched,
    WatchedBarriers,
    WatchedCopies,
    WatchedCounters,
    WatchedMultiplies,
    WatchedStores,
    WatchedWarps,
    unseen,
)
from gemmgen.interpreter import machine
from gemmgen.interpreter.checked_machine import argument
from gemmgen.interpreter.control_flow import uniform
from gemmgen.interpreter.expressions import compile_expression
from gemmgen.interpreter.machine import Step, Trip
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.node_table import code_for
from gemmgen.interpreter.scope import Closure, FrameSlot, Run, Scope
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.control import Block, For
from gemmgen.ir.lane_matrices import OperandArray
from gemmgen.ir.lowered import LoweredKernel, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Node, RegisterArray, is_over_tiles
from gemmgen.ir.warp_matrices import FragmentArray
from gemmgen.numerics.operators import Ints, Value


def record_accesses(
    kernel: LoweredKernel,
    blocks: Ints,
    values: Mapping[str, int | float],
    see: See,
    trips: Trips = every_trip,
    flush: Callable[[], None] = lambda: None,
    see_boxes: SeeBoxes = unseen,
) -> None:
    """Runs ``blocks`` of ``kernel`` on a ``Recorder``."""
    lanes = Lanes(0, len(blocks), *kernel.interface.block)
    watch = Watch(see, flush, see_boxes)
    run = code_for(Recorder(kernel, lanes, blocks, values, watch, trips)).kernel(kernel)
    if run is not None:
        run(None)
    flush()


def first_block(
    kernel: LoweredKernel, values: Mapping[str, int | float]
) -> list[tuple[Site, Ints]]:
    """The accesses of block 0: the first element that each thread touches, by (warps, 32)."""
    lanes, found = Lanes(0, 1, *kernel.interface.block), list[tuple[Site, Ints]]()

    def see(site: Site, index: Index, mask: Mask) -> None:
        found.append((site, first_elements(lanes, index, mask)))

    record_accesses(kernel, np.zeros(1, np.int64), values, see)
    return found


class Recorder:
    """Some blocks of ``kernel``, whose accesses are shown in program order.

    ``blocks`` are the numbers of the blocks, in any order; ``values`` the kernel's integers and
    scalars by name; ``trips`` makes the trips of loops.
    """

    computes = False

    def __init__(
        self,
        kernel: LoweredKernel,
        lanes: Lanes,
        blocks: Ints,
        values: Mapping[str, int | float],
        watch: Watch,
        trips: Trips = every_trip,
    ):
        self.lanes, self._watch = lanes, watch
        self.copies, self.warps = WatchedCopies(watch), WatchedWarps(lanes)
        self.role, self.multiplies = None, WatchedMultiplies()
        self.barriers, self.stores = WatchedBarriers(lanes), WatchedStores(lanes)
        self._kernel, self._blocks, self._values, self._trips = kernel, blocks, values, trips
        self._stages = lcm(*(s.sizes[0] for s in kernel.shared if len(s.sizes) > 2))

    def builtins(self) -> Mapping[str, Index]:
        return self.lanes.builtins() | {
            "blockIdx.x": self._by_lane(self._blocks),
            "gridDim.x": self._tiles * self._kernel.interface.parts,
        }

    def parameter(self, param: Param) -> Closure | Memory:
        if param.kind == "counter":
            part = self._by_lane(self._blocks // self._tiles)
            return WatchedCounters(self._watch, param.name, param.dtype, part)
        if param.kind == "tensor" or param.is_scratch:
            return Watched(self._watch, param.name, param.dtype, "global")
        return argument(param, self._values[param.name])

    @property
    def _tiles(self) -> int:
        """The tiles of C: each has its own block here, a persistent kernel's too."""
        interface = self._kernel.interface
        return interface.tile_count({n: int(self._values[n]) for n in interface.shaping()})

    def _by_lane(self, numbers: Ints) -> Index:
        if len(numbers) == 1:
            return int(numbers[0])
        return numbers if self.lanes.threads == 1 else np.repeat(numbers, self.lanes.threads)

    def shared(self, array: SharedArray) -> Memory:
        return Watched(self._watch, array.name, array.dtype, "shared")

    def registers(
        self, array: RegisterArray | FragmentArray | OperandArray, size: int
    ) -> tuple[Memory, Step | None]:
        return Unwatched(array.name, array.dtype), None

    def barrier(self, mask: Mask) -> None:
        self._watch.flush()

    def sync(self, number: int, threads: int, mask: Mask) -> None:
        self._watch.flush()

    def meet_cluster(self, mask: Mask) -> None:
        self._watch.flush()

    def trips(self, loop: For[Node], scope: Scope) -> machine.Trips:
        if is_over_tiles(loop):
            return _first_trip
        carried = list(_carried(loop, scope))
        together, frame = trips_joined(loop), scope.frame

        def make(trip: Trip, start: Value, stop: Value, step: Value, mask: Mask) -> None:
            first, last, stride = _ints(start, stop, step)
            begun = [(at, *_ints(frame[at], each(mask))) for at, each in carried]

            def run(i: int) -> None:
                for at, origin, each in begun:
                    frame[at] = origin + i * each
                trip(i)
                if together and (i + 1) % together == 0:
                    self._watch.flush()

            self._trips(run, max(0, -(-(last - first) // stride)), stride, self._stages)

        return make

    def within(self, block: Block[Node], body: Step) -> Step:
        if not block.note:
            return body
        watch = self._watch

        def step(mask: Mask) -> None:
            outer, watch.block = watch.block, block
            body(mask)
            watch.block = outer

        return step


def _first_trip(trip: Trip, start: Value, stop: Value, step: Value, mask: Mask) -> None:
    """A block's only tile, as there is a block for each."""
    trip(0)


def _carried(loop: For[Node], scope: Scope) -> Iterator[tuple[int, Run]]:
    """The variables that each trip advances, and by how much."""
    for name, each in inductions(loop.body):
        slot = scope.find(name)
        if isinstance(slot, FrameSlot):
            yield slot.number, compile_expression(each, scope).run


def _ints(*values: Value) -> tuple[int, ...]:
    """Integers that are equal in all threads."""
    found = [uniform(value) for value in values]
    assert all(isinstance(x, int) for x in found), "a loop's counter differs between threads"
    return tuple(cast(int, x) for x in found)
