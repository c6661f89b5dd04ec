"""Lowered kernels run on a CPU with NumPy, all threads of many blocks side by side.

Each statement is done by all threads before the next one begins, so values, addresses, guards and
stages are checked here; a missing barrier is not (the emitted text's own run finds that).  Where
warps of a block have different roles, each role's threads run until they wait.  Shared
memory and registers are poisoned with NaN, indices are flattened as C does, and what a thread may
not do raises ``Trap``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import cast

import numpy as np

from gemmgen.calling.launches import Landing, Order
from gemmgen.interpreter.checked_machine import Argument, CheckedMachine
from gemmgen.interpreter.checked_memory import Elements, poisoned
from gemmgen.interpreter.node_table import code_for
from gemmgen.interpreter.scheduler import Scheduler
from gemmgen.interpreter.simt import Lanes, Trap
from gemmgen.interpreter.together import Together
from gemmgen.interpreter.warp_roles import roles_of
from gemmgen.interpreter.workspace import LaunchState, in_order
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram
from gemmgen.ir.thread_code import executes
from gemmgen.numerics.operators import Ints

__all__ = ["Argument", "Order", "Trap", "interpret", "run_pre_passes", "with_temporaries"]

MOST_LANES = 8192
"""Threads that run side by side: NumPy's cost per call is spread, and the arrays fit a cache."""


def interpret(
    program: LoweredProgram,
    arguments: Mapping[str, Argument],
    landing: Landing = "late",
    order: Order = "ascending",
    multiprocessors: int = 1,
) -> dict[str, Ints]:
    """Run the kernels of ``program`` one after another, in place on flat memories.

    ``arguments`` gives tensors, extents, leading dimensions and scalars by name; they must satisfy
    what the interfaces require.  ``landing`` is when asynchronous copies land, ``order`` that in
    which blocks come that share memory, and persistent blocks are as many as a GPU has of this many
    ``multiprocessors``, or of as many clusters at a time.  Gives for each
    tensor that is written the number of the thread that wrote each element, from 1; 0 for none.
    Raises ``Trap`` if a thread does what it may not.
    """
    values = with_temporaries(program, arguments)
    written: dict[str, Ints] = {}
    for kernel in program.kernels:
        values |= run_pre_passes(kernel, values)
        written |= run_kernel(kernel, values, landing, order, multiprocessors)
    return written


def with_temporaries(
    program: LoweredProgram, arguments: Mapping[str, Argument]
) -> dict[str, Argument]:
    """``arguments`` and the tensors between kernels, poisoned, with padded rows."""
    values = dict(arguments)
    for name in program.temporaries:
        interface = program.kernels[0].interface
        param = next(p for p in interface.params if p.name == name)
        sizes = [cast(int, values[interface.extent(letter)]) for letter in param.indices]
        span = (sizes[-1] // 4 + 1) * 4
        for step, size in zip(interface.steps(param)[-2::-1], sizes[-2::-1], strict=True):
            assert step is not None
            values[step] = span
            span *= size
        values[name] = poisoned(span, param.dtype)
    return values


def run_pre_passes(kernel: LoweredKernel, values: Mapping[str, Argument]) -> dict[str, Argument]:
    """What the launches before a kernel write to memory of its own, as they leave it; poison
    where they write nothing."""
    interface = kernel.interface
    integers = {name: value for name, value in values.items() if isinstance(value, int)}
    found: dict[str, Argument] = {
        param.name: poisoned(interface.scratch_elements(param, integers), param.dtype)
        for param in interface.prepared
    }
    kernels = {pre_pass.interface.name: pre_pass for pre_pass in kernel.pre_passes}
    for launch in interface.before:
        if launch.blocks(integers):
            run_kernel(kernels[launch.interface.name], launch.given({**values, **found}))
    return found


def run_kernel(
    kernel: LoweredKernel,
    arguments: Mapping[str, Argument],
    landing: Landing = "late",
    order: Order = "ascending",
    multiprocessors: int = 1,
) -> dict[str, Ints]:
    """Run one kernel; see ``interpret``."""
    interface = kernel.interface
    extents = {name: cast(int, arguments[name]) for name in interface.shaping()}
    written = {
        p.name: np.zeros(cast(Elements, arguments[p.name]).size, np.int64)
        for p in interface.tensors
        if p.written
    }
    x, y = interface.block
    roles = [(role.name, part) for role in roles_of(kernel.body) for part in role.parts]
    parts = roles or [(None, None)]
    grid = interface.grid(extents, multiprocessors)
    state = LaunchState.of(interface, extents, order, grid)
    with np.errstate(all="ignore"):
        batches = dict(_batches(kernel, extents, grid))
        for first in in_order(batches, order):
            together = Together(batches[first], Scheduler(order))
            machines = [
                CheckedMachine(
                    Lanes(first, batches[first], x, y, part, interface.cluster_blocks),
                    arguments,
                    written,
                    state,
                    together,
                    landing,
                    role,
                )
                for role, part in parts
            ]
            together.scheduler.run(
                [(m.role or "the block", partial(_run, m, kernel)) for m in machines]
            )
            together.end()
    state.check_left(interface)
    return written


def _run(machine: CheckedMachine, kernel: LoweredKernel) -> None:
    """The kernel's body, by the threads of a machine."""
    run = code_for(machine).kernel(kernel)
    if run is not None:
        run(None)
    machine.copies.end()
    machine.stores.end()
    machine.multiplies.leave()


def _batches(
    kernel: LoweredKernel, extents: Mapping[str, int], grid: int
) -> Iterator[tuple[int, int]]:
    """The first blocks, and the numbers, of blocks that run side by side.

    They are whole clusters.  Asynchronous copies are counted for all of them together, so these
    then are of one part, whose loops have the same length; the tiles of a part are neighbours.
    Persistent blocks that run side by side have equally many tiles.
    """
    interface = kernel.interface
    together = interface.cluster_blocks
    at_once = max(1, MOST_LANES // (prod(interface.block) * together)) * together
    tiles = interface.tile_count(extents)
    ends = [grid]
    if interface.resident and grid:
        ends = [tiles % grid, grid]
    elif interface.parts > 1 and executes(kernel.body, "copy_async"):
        ends = [*range(tiles, grid + 1, max(tiles, 1))]
    start = 0
    for end in ends:
        for first in range(start, end, at_once):
            yield first, min(at_once, end - first)
        start = end
