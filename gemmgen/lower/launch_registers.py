"""Whether a kernel has enough registers at its launch for ptxas to compile its instructions."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import Mistake
from gemmgen.base.source import Span
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.occupancy import (
    BESIDE_WGMMA,
    accumulators_of_instruction,
    blocks_per_multiprocessor,
    registers_at_launch,
    registers_of_instruction,
)
from gemmgen.ir.target import REGISTER_FILE
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Schedule


def check_launch_registers(schedule: Schedule, program: Program) -> Iterator[Mistake]:
    """ptxas compiles a ``wgmma`` only if its accumulators fit in what each thread has at the
    launch: ``setmaxnreg`` comes too late."""
    kernel = program.main
    blocks = blocks_per_multiprocessor(kernel)
    had, needed = registers_at_launch(kernel, blocks), registers_of_instruction(kernel)
    if needed <= had:
        return
    atom, columns = ATOMS[kernel.spread.atom], _columns(kernel)
    accumulators = accumulators_of_instruction(kernel)
    launched = f"{blocks} blocks x {kernel.threads}" if blocks > 1 else f"{kernel.threads}"
    yield Mistake(
        f"wgmma of {columns} columns needs {needed} registers of each thread at the launch",
        _span(schedule, kernel),
        _hint(program, needed),
        (
            f"{atom.m} x {columns} / {atom.lanes} = {accumulators} accumulators + {BESIDE_WGMMA} "
            f"= {needed}",
            f"{REGISTER_FILE:,} registers / ({launched} threads), in eights, are {had} for each"
            f"{', whether it copies or multiplies' if kernel.producers.threads else ''}",
        ),
    )


def _columns(kernel: Kernel) -> int:
    """Columns of a warpgroup's tile, which one instruction multiplies."""
    axis = kernel.spread.axes[1]
    return axis.extent // axis.warps


def _span(schedule: Schedule, kernel: Kernel) -> Span | None:
    """What is to blame: ``launch_bounds`` if it asks for several blocks, else the warps' tile."""
    found = {directive.name: directive for directive in schedule.directives}
    if kernel.bounds.blocks > 1:
        blocks = found["launch_bounds"].argument("blocks")
        return blocks.span if blocks else None
    return found["warp_tile" if "warp_tile" in found else "tile"].span


def _hint(program: Program, needed: int) -> str:
    """Fewer blocks if so few are enough, else the most columns that fit."""
    kernel, problem = program.main, program.problem
    asked = kernel.bounds.blocks
    enough = (n for n in range(asked - 1, 0, -1) if registers_at_launch(kernel, n) >= needed)
    blocks = next(enough, 0)
    if blocks > 0:
        return f"blocks={blocks}, the most that fit"
    atom, (rows, columns) = ATOMS[kernel.spread.atom], kernel.spread.axes
    room = registers_at_launch(kernel, max(1, asked)) - BESIDE_WGMMA
    most = atom.columns(room * atom.lanes // atom.m // atom.n * atom.n)
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    sizes = {problem.m: rows.extent, problem.n: most * columns.warps, problem.k: pipeline.step}
    share = {problem.m: rows.extent // rows.warps * atom.warps("row"), problem.n: most}
    return f"tile {format_sizes(sizes.items())} and warp_tile {format_sizes(share.items())}"
