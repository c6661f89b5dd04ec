"""Launches examples (or planted mistakes) once each, for a tool that watches the process.

    python launching.py NAME[:PLANT] ... [--shape MxNxK]

``PLANT`` is a key of ``PLANTS``: an edit of the emitted text that must be found.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cupy as cp
import numpy as np

from gemmgen.formats import STORAGE, stored
from gemmgen.ir.dtypes import BYTES
from gemmgen.pipeline import compile_source
from gemmgen.source import Source

EXAMPLES = Path(__file__).parents[2] / "examples"

PLANTS = {
    "no barrier": ("        __syncthreads();\n        stage = fill;", "        stage = fill;"),
    "no guard": ("if (m < M && n < N) {", "if (m < M + 64) {"),
    "divergent barrier": (
        "    float acc = 0.0f;\n",
        "    float acc = 0.0f;\n    if (threadIdx.x < 7) __syncthreads();\n",
    ),
    "reads C": ("beta != 0.0f ? ", "beta == 0.0f ? "),
}


def launch(name: str, plant: str, shape: tuple[int, int, int]) -> None:
    emitted = compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))
    text = emitted.text
    if plant:
        before, after = PLANTS[plant]
        assert before in text, plant
        text = text.replace(before, after)
    interface = emitted.interface
    module = cp.RawModule(code=text, options=("--std=c++17", "-lineinfo"))
    kernel = module.get_function(interface.name)
    if interface.dynamic_shared:
        kernel.max_dynamic_shared_size_bytes = interface.dynamic_shared
    m, n, k = shape
    rng = np.random.default_rng(m + n)
    values: dict[str, object] = {"M": m, "N": n, "K": k, "alpha": 1.0, "beta": 0.0}
    types = {p.name: p.dtype for p in interface.params}
    for tensor, (rows, columns) in {"A": (m, k), "B": (k, n), "C": (m, n)}.items():
        ld = -(-max(columns, 1) // 8) * 8
        dtype = types[tensor]
        # Exactly as large as the matrix.
        memory = cp.cuda.alloc(max(rows, 1) * ld * BYTES[dtype])
        values[tensor], values["ld" + tensor.lower()] = memory.ptr, ld
        values["memory of " + tensor] = memory
        if tensor != "C":
            # From the host: initcheck follows copies, but only the kernels that it is told to.
            array = cp.ndarray((rows, ld), STORAGE[dtype], memory)
            array.set(stored(rng.standard_normal((rows, ld)), dtype))
    values["bias"] = cp.asarray(np.ones(n, np.float32))
    arguments = tuple(
        (
            np.int32(values[p.name])
            if p.kind in ("extent", "ld")
            else np.float32(values[p.name]) if p.kind == "scalar" else values[p.name]
        )
        for p in interface.params
    )
    pointers = tuple(
        np.uintp(x) if isinstance(x, int) and not isinstance(x, bool) else x for x in arguments
    )
    kernel(
        (interface.grid(values),), interface.block, pointers, shared_mem=interface.dynamic_shared
    )
    cp.cuda.Device().synchronize()


def main(arguments: list[str]) -> None:
    cp.cuda.set_allocator(None)  # no pool: an access behind an array is one behind an allocation
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
