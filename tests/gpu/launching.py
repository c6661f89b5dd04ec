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
from gemmgen.calling.binding import Binding
from gemmgen.calling.scalars import number
from gemmgen.gpu.driver import Loaded
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.planner import held
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import STORAGE, stored
from gemmgen.pipeline import compile_source

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
    emitted = compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))
    text = emitted.text
    if plant:
        before, after = PLANTS[plant]
        assert before in text, plant
        text = text.replace(before, after)
    interface = emitted.interface
    files = Kernel(text, interface, emitted.target).files
    kernel = cp.RawModule(path=str(files.cubin)).get_function(interface.name)
    if interface.dynamic_shared:
        kernel.max_dynamic_shared_size_bytes = interface.dynamic_shared
    values: dict[str, object] = {**dict(zip("MNK", shape, strict=True)), "alpha": 1.0, "beta": 0.0}
    for param in interface.params:
        if param.kind == "tensor":
            place(interface, param, values)
        elif param.is_scratch:
            count = interface.scratch_elements(param, values)  # type: ignore[arg-type]
            fresh(param, count, values)
    binding = Binding(interface)
    loaded = Loaded(kernel.kernel, interface, binding, cp.cuda.runtime.getDevice())
    blocks = interface.grid(values, held(loaded))  # type: ignore[arg-type]
    starter = loaded.starter(blocks, values)  # type: ignore[arg-type]
    first = (*binding.tensors, *interface.scratch, *binding.scalars)
    values |= {param.name: number(param, values[param.name]) for param in binding.scalars}
    starter.start(0, [values[param.name] for param in first])  # type: ignore[misc]
    cp.cuda.Device().synchronize()


def place(interface: Interface, param: Param, values: dict[str, object]) -> None:
    """A tensor in an allocation that is exactly as large."""
    *outer, row = (int(values[interface.extent(letter)]) for letter in param.indices)  # type: ignore
    ld = -(-max(row, 1) // 16) * 16 if outer else row
    shape = (*outer, ld)
    memory = cp.cuda.alloc(max(prod(shape), 1) * BYTES[param.dtype])
    values[param.name], values["memory of " + param.name] = memory.ptr, memory
    if outer:
        values[dict(interface.pitch)[param.name]] = ld
    if not param.written:
        # From the host: initcheck follows copies, but only the kernels that it is given.
        drawn = np.random.default_rng(prod(shape)).standard_normal(shape)
        cp.ndarray(shape, STORAGE[param.dtype], memory).set(stored(drawn, param.dtype))


def fresh(param: Param, count: int, values: dict[str, object]) -> None:
    """Memory for the launch alone."""
    memory = cp.cuda.alloc(max(count, 1) * param.item)
    values[param.name], values["memory of " + param.name] = memory.ptr, memory
    if param.zeroed:
        zeros = np.zeros(count * param.item, np.uint8)
        cp.ndarray(zeros.shape, zeros.dtype, memory).set(zeros)


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
