"""Emitted texts run on the CPU with accumulators that tell who computed them, and when."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from gemmgen.draw.scene import Scene
from gemmgen.ir.blocked_letters import count, plain
from gemmgen.ir.dtypes import DType
from gemmgen.numerics.formats import STORAGE
from gemmgen.numerics.operators import Ints
from gemmgen.sim.allocation import scratch_of
from gemmgen.sim.run import CompiledKernel

ACC_BEGINS = re.compile(r"((?:float|double) acc(?:\[\w+\])*) = (?:\{\}|0\.0f?);")
"""Where the text's accumulators begin with zeros."""


def arguments(scene: Scene, kind: Callable[[DType], object]) -> dict[str, object]:
    """Matrices of zeros at the shape of one tile, accumulators scaled by 1; ``kind`` gives the type
    of an array."""
    interface, problem, shape = scene.kernel.lowered.interface, scene.problem, scene.least()
    sizes = dict(zip(problem.letters, shape, strict=True))
    found: dict[str, object] = {}
    for param in interface.params:
        if param.kind == "tensor":
            extents = [count(letter, sizes[plain(letter)]) for letter in param.indices]
            found[param.name] = np.zeros(extents, kind(param.dtype))
            strides = np.cumprod([1, *extents[:0:-1]])[::-1].tolist()
            names = zip(interface.steps(param), strides, strict=True)
            found |= {name: stride for name, stride in names if name}
        elif param.kind == "scalar":
            found[param.name] = 0.0 if param.name == "beta" else 1.0
    return found | {interface.extent(letter): size for letter, size in sizes.items()}


def of_tile(scene: Scene, values: Ints) -> Ints:
    """The first tile of ``values``, which are shaped as C is, by (m, n)."""
    problem, work = scene.written, scene.main.work
    found = values
    for at in reversed([i for i, x in enumerate(problem.c.letters) if x in problem.batch]):
        found = found.take(0, at)
    letters = problem.matrix(problem.c.letters)
    found = found if letters == (problem.m, problem.n) else found.T
    return found[: work.size(problem.m), : work.size(problem.n)]


def run_text(scene: Scene, changed: Callable[[str], str]) -> Ints:
    """The first tile of C, as integers, after a run of the changed text."""
    emitted, given = scene.kernel.emitted, arguments(scene, STORAGE.__getitem__)
    text = changed(emitted.text)
    assert text != emitted.text
    extents = {name: given[name] for name in emitted.interface.shaping()}
    kernel = CompiledKernel(text, emitted.interface, warn=False)
    kernel.run(given | scratch_of(emitted.interface, extents))
    found = of_tile(scene, given[scene.problem.c.name])
    return np.rint(found.astype(np.float64)).astype(np.int64)
