"""What one thread reads and writes, its registers included, in the order of the lowered kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from gemmgen.analyze.accesses import Site
from gemmgen.analyze.recorder import Recorder
from gemmgen.analyze.watched_memory import Unwatched, Watch
from gemmgen.base.record import record
from gemmgen.draw.recorded import Values
from gemmgen.draw.scene import Scene
from gemmgen.interpreter.code import Code
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.node_table import NODES
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.expr import Element, Int
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
    """Of thread 0 of the first block."""
    kernel = scene.kernel.lowered
    tracer = _Tracer(scene, values)
    nodes = {**NODES, LoadFragment: tracer.load_fragment, MultiplyFragments: tracer.multiply}
    run = Code(tracer, nodes).kernel(kernel)
    assert run is not None
    run(None)
    return Trace(tuple(tracer.found), tracer.sizes)


class _Traced(Unwatched):
    """An array in registers, whose accesses are traced."""

    recorded = True

    def __init__(self, tracer: _Tracer, array: RegisterArray | FragmentArray):
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
        self, array: RegisterArray | FragmentArray, size: int
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

    def _fragment(self, element: Element, code: Code, *, write: bool) -> Step:
        memory, index = code.element(Element(element.buffer, (*element.indices, Int(0))))
        array = code.scope.array(element.buffer)
        each = array.sizes[-1] if array.sizes else 1

        def step(mask: Mask) -> None:
            first = index(mask)
            assert isinstance(first, int)
            self.note(memory.name, write, first // each, 1, mask)

        return step
