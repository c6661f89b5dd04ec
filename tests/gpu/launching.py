"""Launches examples (or planted mistakes) once each, for a tool that watches the process.

    python launching.py NAME[:PLANT] ... [--shape MxNxK]

``PLANT`` is a key of ``PLANTS``: an edit of the emitted text that must be found.
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import cupy as cp
import numpy as np

from gemmgen.base.source import Source
from gemmgen.gpu.launch import Kernel
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import STORAGE, stored
from gemmgen.pipeline import compile_source
from gemmgen.proof.shapes import fit

EXAMPLES = Path(__file__).parents[2] / "examples"

PLANTS = {
    "no barrier": (
        "        __syncthreads();\n        stage = next_stage;",
        "        stage = next_stage;",
    ),
    "no guard": ("if (m < M && n < N) {", "if (m < M + 64) {"),
    "divergent barrier": (
        "    float acc = 0.0f;\n",
        "    float acc = 0.0f;\n    if (threadIdx.x < 7) __syncthreads();\n",
    ),
    "reads C": ("beta != 0.0f ? ", "beta == 0.0f ? "),
    "stores past M": ("if (m < M) {", "if (m < M + 64) {"),
    "barrier of a few": (
        "    // main loop over tiles along K\n",
        "    if (threadIdx.x < 7) __syncthreads();\n    // main loop over tiles along K\n",
    ),
    "reads the old C": ("if (beta != 0.0f) copy4(old", "if (beta == 0.0f) copy4(old"),
}


def launch(name: str, plant: str, shape: tuple[int, int, int]) -> None:
    """One call from Python, with arrays in allocations of exactly their size."""
    emitted = compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))
    text, interface = emitted.text, emitted.interface
    if plant:
        before, after = PLANTS[plant]
        assert before in text, plant
        text = text.replace(before, after)
    kernel = Kernel(text, interface, emitted.target)
    sizes = dict(zip(contraction(interface).letters, fit(emitted, shape), strict=True))
    kernel(**{p.name: placed(p, sizes) for p in interface.params if p.kind == "tensor"})
    cp.cuda.Device().synchronize()


def placed(param: Param, sizes: dict[str, int]) -> cp.ndarray:
    """A tensor in an allocation that ends with its last row; C is left unwritten."""
    extents = [sizes[letter] for letter in param.indices]
    shape, row = [*extents], extents[-1]
    if len(extents) > 1:
        shape[-1] = -(-max(row, 1) // 16) * 16
    memory = cp.cuda.alloc(max(prod(shape), 1) * BYTES[param.dtype])
    whole = cp.ndarray(shape, STORAGE[param.dtype], memory)
    if not param.written:
        # From the host: initcheck follows copies, but only the kernels that it is given.
        drawn = np.random.default_rng(prod(shape)).standard_normal(shape)
        whole.set(stored(drawn, param.dtype))
    return whole[..., :row]


def main(arguments: list[str]) -> None:
    cp.cuda.set_allocator(None)  # no pool: an access past an array is one past an allocation
    shape = (130, 261, 40)
    names = []
    for argument in arguments:
        if argument.startswith("--shape="):
            m, n, k = map(int, argument.removeprefix("--shape=").split("x"))
            shape = m, n, k
        else:
            names.append(argument)
    for argument in names:
        name, _, plant = argument.partition(":")
        launch(name, plant, shape)


if __name__ == "__main__":
    main(sys.argv[1:])
