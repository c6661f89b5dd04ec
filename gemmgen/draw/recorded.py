"""The accesses of one block of a lowered kernel, and which element of a tensor an address is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gemmgen.analyze.accesses import SeeBoxes, Site, first_elements
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.recorder import record_accesses
from gemmgen.analyze.watched_memory import unseen
from gemmgen.draw.scene import Scene
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.problem import Tensor
from gemmgen.numerics.operators import Ints

Values = Mapping[str, int | float]


def dense(scene: Scene, shape: Shape) -> Values:
    """The arguments at ``shape``, with rows and matrices one after another."""
    return arguments_of(scene.kernel.lowered.interface, scene.problem, shape, dense=True)


def record_block(
    scene: Scene,
    values: Values,
    see: Callable[[Site, Ints], None],
    see_boxes: SeeBoxes = unseen,
) -> None:
    """Shows ``see`` the accesses of the block that stores the first tile of C: of those that share
    it the last.  Each comes with every thread's first element, -1 for none; those of TMA
    go to ``see_boxes``."""
    kernel = scene.kernel.lowered
    extents = {name: int(values[name]) for name in kernel.interface.shaping()}
    last = (kernel.interface.parts - 1) * kernel.interface.tile_count(extents)
    lanes = Lanes(0, 1, *kernel.interface.block)

    def seen(site: Site, index: Index, mask: Mask) -> None:
        see(site, first_elements(lanes, index, mask).reshape(-1))

    record_accesses(kernel, np.array([last]), values, seen, see_boxes=see_boxes)


def position(scene: Scene, tensor: Tensor, values: Values, address: int) -> dict[str, int]:
    """The index of each letter of the element at ``address`` of a dense tensor."""
    return positions(scene, tensor, values)(address)


def positions(scene: Scene, tensor: Tensor, values: Values) -> Callable[[int], dict[str, int]]:
    """``position`` of many addresses."""
    interface = scene.kernel.lowered.interface
    param = next(p for p in interface.tensors if p.name == tensor.name)
    strides = [int(values[name]) if name else 1 for name in interface.steps(param)]
    steps = sorted(zip(strides, param.indices, strict=True), key=lambda step: -step[0])

    def at(address: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for step, letter in steps:
            found[letter], address = divmod(address, step)
        return found

    return at
