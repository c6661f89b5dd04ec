"""Memories that hold no values and report their accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

import numpy as np

from gemmgen.analyze.accesses import Rows, See, SeeBoxes, Site, Space
from gemmgen.analyze.fragment_accesses import spans_of
from gemmgen.base.record import record
from gemmgen.interpreter.control_flow import less
from gemmgen.interpreter.machine import Boxes, Lines, MatrixRows, WarpgroupProduct
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.scope import UNKNOWN
from gemmgen.interpreter.simt import Index, Lanes, Mask, where
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import Block
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.lane_matrices import ROWS, row_of
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_matrices import LoadFragment, StoreFragment
from gemmgen.numerics.operators import Bools, Ints, Value


def unseen(site: Site, rows: Rows) -> None:
    """Ignore the accesses of boxes."""


class Watch:
    """What sees the accesses, and the block of statements that makes them now.

    ``flush`` is called where the compiler keeps reads before it from those after it.
    """

    def __init__(self, see: See, flush: Callable[[], None], see_boxes: SeeBoxes = unseen):
        self.see, self.flush, self.see_boxes = see, flush, see_boxes
        self.block: Block[Node] = Block("", (), ())


class Unwatched(Memory):
    """Registers: they hold nothing, and no access of them is counted."""

    known = UNKNOWN
    recorded = False

    def see(
        self, index: Index, mask: Mask, *, write: bool, width: int = 1, fragment: bool = False
    ) -> None:
        """An access of ``width`` elements from ``index`` on."""

    def load(self, index: Index, mask: Mask) -> Value:
        self.see(index, mask, write=False)
        return UNKNOWN

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        self.see(index, mask, write=True)

    def read(
        self, index: Index, width: int, mask: Mask, valid: Value | None = None
    ) -> Sequence[Value]:
        """A vector that is partly inside counts as a whole one."""
        some, there = (True, mask) if valid is None else where(less(0, valid), mask)
        if some:
            self.see(index, there, write=False, width=width)
        return (UNKNOWN,) * width

    def write(self, index: Index, values: Sequence[Value], mask: Mask) -> None:
        self.see(index, mask, write=True, width=len(values))


class Watched(Unwatched):
    """Global or shared memory that reports each access to its ``Watch``."""

    recorded = True

    def __init__(self, watch: Watch, name: str, dtype: DType, space: Space):
        super().__init__(name, dtype)
        self._watch = watch
        self._space: Space = space
        self._sites: dict[tuple[object, ...], Site] = {}

    def see(
        self, index: Index, mask: Mask, *, write: bool, width: int = 1, fragment: bool = False
    ) -> None:
        """Report an access by the current block of statements."""
        self._watch.see(self._site(write, width, fragment), index, mask)

    def see_boxes(self, rows: Rows, *, write: bool) -> None:
        """Report what TMA moves for the current block of statements."""
        self._watch.see_boxes(self._site(write, 1, False, boxes=True), rows)

    def _site(self, write: bool, width: int, fragment: bool, *, boxes: bool = False) -> Site:
        note, origins = self._watch.block.note, self._watch.block.origins
        key = (note, origins, write, width, fragment, boxes)
        if key not in self._sites:
            kind = (self.name, self._space, write, width, note, origins)
            self._sites[key] = Site(*kind, BYTES[self.dtype], fragment, boxes=boxes)
        return self._sites[key]

    def add(self, index: Index, value: Value, mask: Mask) -> None:
        self.see(index, mask, write=True)


class WatchedCounters(Watched):
    """Counters of blocks that share a tile; ``part`` is the number of each lane's part.

    Which block comes last makes no difference to the counts: it is taken to be the one with the
    last part, of a group that with the group's last; of groups, the last group's.
    """

    def __init__(self, watch: Watch, name: str, dtype: DType, part: Index):
        super().__init__(watch, name, dtype, "global")
        self._number = part

    def count(self, index: Index, last: int, mask: Bools) -> Value:
        if mask.any():
            self.see(index, mask, write=True)
        own, sharers = self._number, last + 1
        self._number = own // sharers
        return cast(Value, own % sharers == last)


@record
class WatchedCopies:
    """Asynchronous copies: each writes its whole vector."""

    watch: Watch

    def issue(self, target: Memory, index: Index, values: Sequence[Value], mask: Mask) -> None:
        self.watch.flush()
        target.write(index, values, mask)

    def commit(self, mask: Mask) -> None:
        self.watch.flush()

    def wait(self, pending: int, mask: Mask) -> None:
        self.watch.flush()


class WatchedBarriers:
    """Barriers: only the copies that complete on them are counted."""

    def __init__(self, lanes: Lanes):
        self._lanes = lanes

    def declare(self, array: BarrierArray) -> None:
        pass

    def init(self, name: str, index: Index, arrivals: int, mask: Mask) -> None:
        pass

    def fence(self, mask: Mask) -> None:
        pass

    def expect(self, name: str, index: Index, count: int, mask: Mask) -> None:
        pass

    def arrive(self, name: str, index: Index, mask: Mask, block: Value | None = None) -> None:
        pass

    def wait(self, name: str, index: Index, parity: Value, mask: Mask) -> None:
        pass

    def test(self, name: str, index: Index, parity: Value, mask: Mask) -> Bools:
        return np.ones(self._lanes.count, np.bool_)

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
        """The elements inside the tensor are read once, and whole boxes written, in each of the
        ``blocks`` that are given as bits: as many as others write into the block's own memory."""
        assert isinstance(boxes.tensor, Watched) and isinstance(target, Watched)
        lanes = np.arange(self._lanes.count) if mask is None else np.flatnonzero(mask)
        starts = [self._lanes.every(start)[lanes] for start in at]
        numbers = lanes // self._lanes.threads
        boxes.tensor.see_boxes(_rows_inside(boxes, starts, numbers), write=False)
        if blocks is not None:
            bits = self._lanes.every(blocks)[lanes]
            lanes = np.repeat(lanes, [int(bit).bit_count() for bit in bits])
            numbers = lanes // self._lanes.threads
        whole = np.full(len(lanes), prod(boxes.sides))
        target.see_boxes(Rows(numbers, self._lanes.every(to)[lanes], whole), write=True)


class WatchedStores:
    """TMA stores: boxes that leave shared memory."""

    def __init__(self, lanes: Lanes):
        self._lanes = lanes

    def store(
        self, boxes: Boxes, at: Sequence[Index], source: Memory, first: Index, mask: Mask
    ) -> None:
        """Whole boxes are read, and the elements inside the tensor written."""
        assert isinstance(boxes.tensor, Watched) and isinstance(source, Watched)
        lanes = np.arange(self._lanes.count) if mask is None else np.flatnonzero(mask)
        starts = [self._lanes.every(start)[lanes] for start in at]
        blocks = lanes // self._lanes.threads
        whole = np.full(len(lanes), prod(boxes.sides))
        source.see_boxes(Rows(blocks, self._lanes.every(first)[lanes], whole), write=False)
        boxes.tensor.see_boxes(_rows_inside(boxes, starts, blocks), write=True)

    def commit(self, mask: Mask) -> None:
        pass

    def wait(self, pending: int, mask: Mask) -> None:
        pass


def _rows_inside(boxes: Boxes, starts: Sequence[Ints], blocks: Ints) -> Rows:
    """The parts of boxes' rows that are inside the tensor."""
    size, side = boxes.sizes[0], boxes.sides[0]
    begin = np.clip(starts[0], 0, size)[:, None]
    length = np.clip(starts[0] + side, 0, size)[:, None] - begin
    for at in range(1, len(starts)):
        along = starts[at][:, None] + np.arange(boxes.sides[at])
        inside = (along >= 0) & (along < boxes.sizes[at])
        offset = (along * boxes.strides[at])[:, :, None] + begin[:, None, :]
        begin = offset.reshape(len(blocks), -1)
        length = (inside[:, :, None] * length[:, None, :]).reshape(len(blocks), -1)
    numbers = np.repeat(blocks, begin.shape[1])
    return Rows(numbers, begin.reshape(-1), length.reshape(-1))


class WatchedWarps:
    """Fragments, as the compiled code accesses them."""

    def __init__(self, lanes: Lanes):
        self._lane = np.arange(lanes.count) % WARP

    def read(self, node: LoadFragment, lines: Lines, mask: Mask) -> Sequence[Value]:
        self._see(node, lines, mask)
        return ()

    def write(self, node: StoreFragment, lines: Lines, values: Sequence[Value], mask: Mask) -> None:
        self._see(node, lines, mask)

    def matrices(
        self, matrices: MatrixRows, tile: Memory, rows: Index, mask: Mask
    ) -> Sequence[Value]:
        self._see_rows(matrices, tile, rows, mask, write=False)
        return ()

    def store_matrices(
        self, matrices: MatrixRows, tile: Memory, rows: Index, values: Sequence[Value], mask: Mask
    ) -> None:
        self._see_rows(matrices, tile, rows, mask, write=True)

    def _see_rows(
        self, matrices: MatrixRows, tile: Memory, rows: Index, mask: Mask, *, write: bool
    ) -> None:
        """Each lane's row is an access; lanes beyond those of the matrices have none."""
        assert isinstance(tile, Watched)
        named = ROWS * matrices.count
        some = mask if named >= WARP else (self._lane < named) & (True if mask is None else mask)
        tile.see(rows, some, write=write, width=row_of(matrices.dtype), fragment=True)

    def _see(self, node: LoadFragment | StoreFragment, lines: Lines, mask: Mask) -> None:
        assert isinstance(lines.memory, Watched)
        (spans, width), write = spans_of(node), isinstance(node, StoreFragment)
        for line, within in spans:
            at = lines.first + line[self._lane] * lines.apart + within[self._lane]
            lines.memory.see(at, mask, write=write, width=width, fragment=True)

    def converge(self, mask: Mask) -> None:
        pass


class WatchedMultiplies:
    """Multiplications of warpgroups: their instructions read the operands, and no thread does."""

    def issue(self, instruction: WarpgroupProduct, mask: Mask) -> None: ...

    def commit(self, mask: Mask) -> None: ...

    def wait(self, pending: int, mask: Mask) -> None: ...

    def end(self, accumulators: Memory, mask: Mask) -> None: ...
