"""The reads and writes of one thread, registers included, in the order of the lowered kernel."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, cast

import numpy as np

from gemmgen.analyze.accesses import Site
from gemmgen.analyze.recorder import Recorder
from gemmgen.analyze.watched_memory import Unwatched, Watch
from gemmgen.base.record import record
from gemmgen.draw.recorded import Values
from gemmgen.draw.scene import Scene
from gemmgen.interpreter.code import Code
from gemmgen.interpreter.fragments import first_of
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.node_table import NODES
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lane_matrices import ROWS, OperandArray, SplitMatrices, packed
from gemmgen.ir.simplify import add
from gemmgen.ir.thread_code import RegisterArray
from gemmgen.ir.warp_matrices import FragmentArray, LoadFragment, MultiplyFragments


@record
class TracedAccess:
    """``width`` elements of an array from ``first`` on, counted as its memory is flat; fragments of
    tensor cores are counted as one element each."""

    array: str
    write: bool
    first: int
    width: int


@record
class Trace:
    """``sizes`` are the extents of arrays in registers."""

    accesses: tuple[TracedAccess, ...]
    sizes: Mapping[str, tuple[int, ...]]


def trace(scene: Scene, values: Values) -> Trace:
    """The trace of thread 0 of the first block."""
    kernel = scene.kernel.lowered
    tracer = _Tracer(scene, values)
    nodes: dict[type[Any] | str, Any] = {
        **NODES,
        LoadFragment: tracer.load_fragment,
        MultiplyFragments: tracer.multiply,
        "ldmatrix": tracer.load_matrices,
        SplitMatrices: tracer.split_matrices,
        "mma": tracer.multiply_matrices,
    }
    run = Code(tracer, nodes).kernel(kernel)
    assert run is not None
    run(None)
    return Trace(tuple(tracer.found), tracer.sizes)


class _Traced(Unwatched):
    """An array in registers, whose accesses are traced."""

    recorded = True

    def __init__(self, tracer: _Tracer, array: RegisterArray | FragmentArray | OperandArray):
        super().__init__(array.name, array.dtype)
        self._tracer = tracer

    def see(
        self, index: Index, mask: Mask, *, write: bool, width: int = 1, fragment: bool = False
    ) -> None:
        self._tracer.note(self.name, write, index, width, mask)


class _Tracer(Recorder):
    """A recorder of thread 0 that records registers, too."""

    def __init__(self, scene: Scene, values: Values):
        lanes = Lanes(0, 1, *scene.kernel.lowered.interface.block)
        watch = Watch(self._see, lambda: None)
        super().__init__(scene.kernel.lowered, lanes, np.zeros(1, np.int64), values, watch)
        self.found: list[TracedAccess] = []
        self.sizes: dict[str, tuple[int, ...]] = {}

    def note(self, array: str, write: bool, index: Index, width: int, mask: Mask) -> None:
        if mask is None or mask[0]:
            first = index if isinstance(index, int) else int(cast(int, index[0]))
            self.found.append(TracedAccess(array, write, first, width))

    def _see(self, site: Site, index: Index, mask: Mask) -> None:
        if not site.fragment:
            self.note(site.buffer, site.write, index, site.width, mask)

    def registers(
        self, array: RegisterArray | FragmentArray | OperandArray, size: int
    ) -> tuple[Memory, Step | None]:
        self.sizes[array.name] = array.sizes
        return _Traced(self, array), None

    def load_fragment(self, node: LoadFragment, code: Code) -> Step:
        """A read of the fragment's first element, then its registers are written."""
        tile, first = code.element(node.source)

        def step(mask: Mask) -> None:
            self.note(tile.name, False, first(mask), 1, mask)
            written(mask)

        written = self._fragment(node.target, code, write=True)
        return step

    def multiply(self, node: MultiplyFragments, code: Code) -> Step:
        """In the order of a multiply-add: both operands, and the sum read and written."""
        parts = [self._fragment(x, code, write=False) for x in (node.a, node.b, node.sum)]
        parts.append(self._fragment(node.sum, code, write=True))

        def step(mask: Mask) -> None:
            for part in parts:
                part(mask)

        return step

    def load_matrices(self, node: Instruction, code: Code) -> Step:
        """A read of each matrix's first element, which a separate lane addresses; then the register
        of it is written."""
        target, row = node.operands
        assert isinstance(target, Element)
        tile, first = code.element(row)
        *outer, last = target.indices
        registers = [
            self._fragment(Element(target.buffer, (*outer, add(last, Int(at)))), code, write=True)
            for at in range(cast(int, node.get("count")))
        ]

        def step(mask: Mask) -> None:
            named = self.lanes.every(first(mask))
            for at, written in enumerate(registers):
                self.note(tile.name, False, int(named[ROWS * at]), 1, mask)
                written(mask)

        return step

    def split_matrices(self, node: SplitMatrices, code: Code) -> Step:
        """For each register of a part, a read of the first number in it, and its write."""

        def register(of: Element, at: int, *, write: bool) -> Step:
            *outer, last = of.indices
            first = Element(of.buffer, (*outer, add(last, Int(at))))
            return self._fragment(first, code, write=write)

        each = packed(node.dtype)
        steps = [
            one
            for number, at in product(range(node.parts), range(node.count))
            for one in (
                register(node.source, each * at, write=False),
                register(node.part(number), at, write=True),
            )
        ]

        def step(mask: Mask) -> None:
            for one in steps:
                one(mask)

        return step

    def multiply_matrices(self, node: Instruction, code: Code) -> Step:
        """The accesses in the same order; of several accumulators only the first one."""
        total, *_, a, b = node.operands
        operands = [self._fragment(x, code, write=False) for x in (a, b)]
        accumulators, first = code.element(total)

        def step(mask: Mask) -> None:
            for operand in operands:
                operand(mask)
            for write in (False, True):
                self.note(accumulators.name, write, first(mask), 1, mask)

        return step

    def _fragment(self, element: Expr, code: Code, *, write: bool) -> Step:
        assert isinstance(element, Element)
        first = first_of(element, code)
        memory, index = code.element(first)
        array = code.scope.array(element.buffer)
        each = array.sizes[-1] if array.sizes and first != element else 1

        def step(mask: Mask) -> None:
            number = index(mask)
            assert isinstance(number, int)
            self.note(memory.name, write, number // each, 1, mask)

        return step
