"""Meaning, executable: lowered kernels run on a CPU, all threads of many blocks side by side.

Each statement is done by all threads before the next one begins, so values, addresses, guards and
stages are checked here; a missing barrier is not (the emitted text's own run finds that).  Shared
memory and registers are poisoned with NaN, indices are flattened as C does, and what a thread may
not do raises ``Trap``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from gemmgen.ir.evaluate import Ints
from gemmgen.ir.landing import Landing
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram
from gemmgen.ir.machine import Argument, Machine
from gemmgen.ir.memory import Elements, Lanes, Trap, poisoned

__all__ = ["Argument", "Trap", "interpret", "with_temporaries"]

MOST_LANES = 8192
"""Threads that run side by side: NumPy's cost per call is spread, and the arrays fit a cache."""


def interpret(
    program: LoweredProgram, arguments: Mapping[str, Argument], landing: Landing = "late"
) -> dict[str, Ints]:
    """Run the kernels of ``program`` one after another, in place on flat memories.

    ``arguments`` gives tensors, extents, leading dimensions and scalars by name; they must satisfy
    what the interfaces require.  ``landing`` is when asynchronous copies land.  Gives for each
    tensor that is written the number of the thread that wrote each element, from 1; 0 for none.
    Raises ``Trap`` where a thread does what it may not.
    """
    values = with_temporaries(program, arguments)
    written: dict[str, Ints] = {}
    for kernel in program.kernels:
        written |= run_kernel(kernel, values, landing)
    return written


def with_temporaries(
    program: LoweredProgram, arguments: Mapping[str, Argument]
) -> dict[str, Argument]:
    """``arguments`` and the matrices between kernels, poisoned, with padded rows."""
    values = dict(arguments)
    types = {p.name: p.dtype for kernel in program.kernels for p in kernel.interface.params}
    for name, letters in program.temporaries:
        rows, columns = (values[letter.upper()] for letter in letters)
        assert isinstance(rows, int) and isinstance(columns, int)
        ld = (columns // 4 + 1) * 4
        values["ld" + name.lower()] = ld
        values[name] = poisoned(rows * ld, types[name])
    return values


def run_kernel(
    kernel: LoweredKernel, arguments: Mapping[str, Argument], landing: Landing = "late"
) -> dict[str, Ints]:
    """Run one kernel; see ``interpret``."""
    interface = kernel.interface
    extents = {name: cast(int, arguments[name]) for name, _ in interface.tiles}
    written = {
        p.name: np.zeros(cast(Elements, arguments[p.name]).size, np.int64)
        for p in interface.params
        if p.kind == "tensor" and p.written
    }
    x, y = interface.block
    grid = interface.grid(extents)
    at_once = max(1, MOST_LANES // (x * y))
    with np.errstate(all="ignore"):
        for first in range(0, grid, at_once):
            lanes = Lanes(first, min(at_once, grid - first), x, y)
            Machine(kernel, lanes, arguments, written, landing).run()
    return written
