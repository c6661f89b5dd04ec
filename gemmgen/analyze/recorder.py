"""A machine that watches: it computes addresses and conditions, and shows each access of memory.

Sums and fragments are never computed: addresses and guards depend on integers alone, so what is
left of a kernel is its index arithmetic.  No memory is needed either, which makes any shape
possible.  If an epilogue chooses by such a float (``where(acc > 0, bias[n], 0)``), both sides are
taken to be read, as some threads of a warp will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import lcm
from typing import cast

import numpy as np

from gemmgen.analyze.fragment_accesses import places_of
from gemmgen.analyze.sites import See, Site, Space
from gemmgen.analyze.trips import Trips, every_trip, inductions
from gemmgen.interpreter import machine
from gemmgen.interpreter.checked_machine import argument
from gemmgen.interpreter.control_flow import less, uniform
from gemmgen.interpreter.expressions import compile_expression
from gemmgen.interpreter.machine import Step, Trip
from gemmgen.interpreter.mechanisms import code_for
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.operators import Bools, Ints, Value
from gemmgen.interpreter.scope import UNKNOWN, Compiled, Run, Scope, Slot
from gemmgen.interpreter.simt import Index, Lanes, Mask, where
from gemmgen.ir.control import Barrier, Block, For, If
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.interface import Param
from gemmgen.ir.lowered import (
    FragmentArray,
    LoadFragment,
    LoweredKernel,
    Node,
    RegisterArray,
    SharedArray,
    StoreFragment,
)
from gemmgen.ir.target import WARP


class Recorder:
    """Some blocks of ``kernel``, whose accesses are shown to ``see`` in program order.

    ``blocks`` are numbers of blocks, in any order; ``values`` the kernel's integers and scalars by
    name; ``trips`` makes the trips of loops; ``flush`` is called where the compiler keeps reads
    before it from those after it: at barriers, asynchronous copies, and the ends of trips of loops
    that have some, or are unrolled in part.  ``block`` are the threads of each that take part.
    """

    computes = False

    def __init__(
        self,
        kernel: LoweredKernel,
        blocks: Ints,
        values: Mapping[str, int | float],
        see: See,
        trips: Trips = every_trip,
        flush: Callable[[], None] = lambda: None,
        block: tuple[int, int] | None = None,
    ):
        self.lanes = Lanes(0, len(blocks), *(block or kernel.interface.block))
        self.see, self.flush = see, flush
        self.block: Block[Node] = Block("", (), ())
        self.copies, self.warps = _Copies(self), _Warps(self)
        self._blocks, self._values, self._trips = blocks, values, trips
        self._stages = lcm(*(s.sizes[0] for s in kernel.shared if len(s.sizes) == 3))
        extents = {name: int(values[name]) for name in kernel.interface.shaping()}
        self._rank = self._by_lane(blocks // max(1, kernel.interface.tile_count(extents)))

    def builtins(self) -> Mapping[str, Index]:
        return self.lanes.builtins() | {"blockIdx.x": self._by_lane(self._blocks)}

    def _by_lane(self, numbers: Ints) -> Index:
        return np.repeat(numbers, self.lanes.threads) if len(numbers) > 1 else int(numbers[0])

    def parameter(self, param: Param) -> Compiled | Memory:
        if param.kind == "tensor" or param.is_scratch:
            return Watched(self, param.name, param.dtype, "global")
        return argument(param, self._values[param.name])

    def shared(self, array: SharedArray) -> Memory:
        return Watched(self, array.name, array.dtype, "shared")

    def registers(
        self, array: RegisterArray | FragmentArray, size: int
    ) -> tuple[Memory, Step | None]:
        return Unwatched(array.name, array.dtype), None

    def barrier(self, mask: Mask) -> None:
        self.flush()

    def trips(self, loop: For[Node], scope: Scope) -> machine.Trips:
        carried = list(_carried(loop, scope))
        together, frame = _unrolled(loop), scope.frame

        def make(trip: Trip, start: Value, stop: Value, step: Value, mask: Mask) -> None:
            first, last, stride = _ints(start, stop, step)
            begun = [(at, *_ints(frame[at], each(mask))) for at, each in carried]

            def run(i: int) -> None:
                for at, origin, each in begun:
                    frame[at] = origin + i * each
                trip(i)
                if together and (i + 1) % together == 0:
                    self.flush()

            self._trips(run, max(0, -(-(last - first) // stride)), stride, self._stages)

        return make

    def within(self, block: Block[Node], body: Step) -> Step:
        if not block.note:
            return body

        def step(mask: Mask) -> None:
            outer, self.block = self.block, block
            body(mask)
            self.block = outer

        return step

    def comes_last(self, sharers: int) -> Value:
        """Whether a lane's block is the last of ``sharers`` that count.

        Which one it is makes no difference to the counts: it is taken to be the one with the last
        part, of a group that with the group's last; of groups, the last group's.
        """
        own = self._rank
        self._rank = own // sharers
        return cast(Value, own % sharers == sharers - 1)


def record_accesses(
    kernel: LoweredKernel,
    blocks: Ints,
    values: Mapping[str, int | float],
    see: See,
    trips: Trips = every_trip,
    flush: Callable[[], None] = lambda: None,
) -> None:
    """Runs ``blocks`` of ``kernel`` on a ``Recorder``."""
    run = code_for(Recorder(kernel, blocks, values, see, trips, flush)).kernel(kernel)
    if run is not None:
        run(None)
    flush()


class Watched(Memory):
    """A memory that holds nothing, and shows what is accessed."""

    known = UNKNOWN

    def __init__(self, recorder: Recorder, name: str, dtype: DType, space: Space):
        super().__init__(name, dtype)
        self._recorder = recorder
        self._space: Space = space
        self._sites: dict[tuple[object, ...], Site] = {}

    def see(
        self, index: Index, mask: Mask, *, write: bool, width: int = 1, fragment: bool = False
    ) -> None:
        """An access of ``width`` elements from ``index`` on, by the present block of statements."""
        block = self._recorder.block
        key = (block.note, block.origins, write, width, fragment)
        if key not in self._sites:
            size = BYTES[self.dtype]
            origin = (block.note, block.origins, size, fragment)
            self._sites[key] = Site(self.name, self._space, write, width, *origin)
        self._recorder.see(self._sites[key], index, mask)

    def load(self, index: Index, mask: Mask) -> Value:
        self.see(index, mask, write=False)
        return UNKNOWN

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        self.see(index, mask, write=True)

    def add(self, index: Index, value: Value, mask: Mask) -> None:
        self.see(index, mask, write=True)

    def read(
        self, index: Index, width: int, mask: Mask, valid: Value | None = None
    ) -> Sequence[Value]:
        """If some exist, whole pieces are counted."""
        some, there = (True, mask) if valid is None else where(less(0, valid), mask)
        if some:
            self.see(index, there, write=False, width=width)
        return ()

    def write(self, index: Index, values: Sequence[Value], width: int, mask: Mask) -> None:
        self.see(index, mask, write=True, width=width)

    def count(self, index: Index, last: int, mask: Bools) -> Value:
        if mask.any():
            self.see(index, mask, write=True)
        return self._recorder.comes_last(last + 1)


class Unwatched(Memory):
    """Registers: they hold nothing, and no access of them is counted."""

    known = UNKNOWN
    recorded = False

    def load(self, index: Index, mask: Mask) -> Value:
        return UNKNOWN

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        pass

    def read(
        self, index: Index, width: int, mask: Mask, valid: Value | None = None
    ) -> Sequence[Value]:
        return ()

    def write(self, index: Index, values: Sequence[Value], width: int, mask: Mask) -> None:
        pass


class _Copies:
    """Asynchronous copies: they write all of a piece."""

    def __init__(self, recorder: Recorder):
        self._recorder = recorder

    def issue(
        self, target: Memory, index: Index, values: Sequence[Value], width: int, mask: Mask
    ) -> None:
        self._recorder.flush()
        target.write(index, values, width, mask)

    def commit(self, mask: Mask) -> None:
        self._recorder.flush()

    def wait(self, pending: int, mask: Mask) -> None:
        self._recorder.flush()


class _Warps:
    """Fragments, as the compiled code accesses them."""

    def __init__(self, recorder: Recorder):
        self._lane = np.arange(recorder.lanes.count) % WARP

    def read(
        self, tile: Memory, node: LoadFragment, index: Index, pitch: Value, mask: Mask
    ) -> Sequence[Value]:
        self._see(tile, node, index, pitch, mask)
        return ()

    def write(
        self,
        tile: Memory,
        node: StoreFragment,
        index: Index,
        pitch: Value,
        values: Sequence[Value],
        mask: Mask,
    ) -> None:
        self._see(tile, node, index, pitch, mask)

    def _see(
        self,
        tile: Memory,
        node: LoadFragment | StoreFragment,
        index: Index,
        pitch: Value,
        mask: Mask,
    ) -> None:
        assert isinstance(tile, Watched)
        places, width = places_of(node)
        write, apart = isinstance(node, StoreFragment), cast(int, pitch)
        for line, within in places:
            at = index + line[self._lane] * apart + within[self._lane]
            tile.see(at, mask, write=write, width=width, fragment=True)

    def meet(self, mask: Mask) -> None:
        pass


def _carried(loop: For[Node], scope: Scope) -> Iterator[tuple[int, Run]]:
    """The variables that each trip advances, and by how much."""
    for name, each in inductions(loop.body):
        slot = scope.find(name)
        if isinstance(slot, Slot):
            yield slot.place, compile_expression(each, scope).run


def _unrolled(node: For[Node]) -> int:
    """Trips of a loop whose reads the compiler sees at once; 0 for all.  A loop without a barrier
    that says nothing is unrolled by the compiler."""
    if node.unroll is False:
        return int(any(isinstance(inner, Barrier) for inner in _statements(node.body)))
    return 0 if node.unroll is True else node.unroll


def _statements(body: tuple[Node, ...]) -> Iterator[Node]:
    for node in body:
        yield node
        if isinstance(node, Block | For):
            yield from _statements(node.body)
        elif isinstance(node, If):
            yield from _statements((*node.body, *node.otherwise))


def _ints(*values: Value) -> tuple[int, ...]:
    """Numbers that all threads have."""
    found = [uniform(value) for value in values]
    assert all(isinstance(x, int) for x in found), "what a loop counts differs between threads"
    return tuple(cast(int, x) for x in found)
