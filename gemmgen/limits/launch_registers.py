"""Whether ptxas has enough registers to compile a kernel's ``wgmma``."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import Mistake
from gemmgen.base.source import Span
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import pipeline_of, promotion_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.occupancy import (
    BESIDE_WGMMA,
    accumulators_of_instruction,
    blocks_per_multiprocessor,
    can_multiply,
    registers_at_launch,
    registers_of_instruction,
    registers_when_multiplying,
)
from gemmgen.ir.target import MAX_THREADS, REGISTER_FILE, WARPGROUP
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Schedule


def check_blocks(schedule: Schedule, program: Program) -> Iterator[Mistake]:
    """``launch_bounds`` for more blocks than leave enough registers, if fewer would."""
    kernel = program.main
    asked = kernel.bounds.blocks
    if asked <= 1 or can_multiply(kernel, asked):
        return
    most = next((n for n in range(asked - 1, 0, -1) if can_multiply(kernel, n)), 0)
    if most == 0:
        return
    needed, threads = kernel.spread.registers + BESIDE_WGMMA, kernel.threads
    directive = next(d for d in schedule.directives if d.name == "launch_bounds")
    blocks = directive.argument("blocks")
    each = registers_at_launch(threads, asked)
    having = registers_when_multiplying(kernel.consumers, kernel.producers.threads, asked)
    given = f"; consumers get {having}" if having > each else ""
    yield Mistake(
        f"launch_bounds blocks={asked}: a thread has too few registers for wgmma",
        blocks.span if blocks else directive.span,
        f"blocks={most}, the most that fit",
        (
            f"{kernel.spread.registers} accumulators + {BESIDE_WGMMA} = {needed}, of one "
            f"instruction {registers_of_instruction(kernel)} at the launch",
            f"{REGISTER_FILE:,} registers / ({asked} x {threads} threads), in eights, are {each} "
            f"for each{given}",
        ),
    )


def check_launch_registers(schedule: Schedule, program: Program) -> Iterator[Mistake]:
    """ptxas compiles a ``wgmma`` only if its accumulators fit in what each thread has at the
    launch: ``setmaxnreg`` runs too late."""
    kernel = program.main
    blocks = blocks_per_multiprocessor(kernel)
    had, needed = registers_at_launch(kernel.threads, blocks), registers_of_instruction(kernel)
    if needed <= had:
        return
    atom, columns = ATOMS[kernel.spread.atom], _share(kernel)[1]
    accumulators = accumulators_of_instruction(kernel)
    launched = f"{blocks} x {kernel.threads}" if blocks > 1 else f"{kernel.threads}"
    yield Mistake(
        f"wgmma of {columns} columns needs {needed} registers of each thread at the launch",
        _span(schedule),
        _hint(program),
        (
            f"{atom.m} x {columns} / {atom.lanes} = {accumulators} accumulators + {BESIDE_WGMMA} "
            f"= {needed}",
            f"{REGISTER_FILE:,} registers / ({launched} threads), in eights, are {had} for each"
            f"{', whether it copies or multiplies' if kernel.producers.threads else ''}",
        ),
    )


def _span(schedule: Schedule) -> Span:
    """The line that says how wide the instruction is."""
    found = {directive.name: directive.span for directive in schedule.directives}
    return found["warp_tile" if "warp_tile" in found else "tile"]


def _hint(program: Program) -> str:
    """The tile of as many warpgroups with the most columns that fit."""
    kernel = program.main
    atom, (rows, columns) = ATOMS[kernel.spread.atom], _share(kernel)
    room = registers_at_launch(kernel.threads, kernel.bounds.blocks) - BESIDE_WGMMA
    most = atom.columns(min(columns, room * atom.lanes // atom.m))
    return _with_tile(program, rows, most)


def smaller_warpgroup(program: Program) -> str:
    """The ``warp_tile`` with the greater side halved until its accumulators fit; where that takes
    more threads than have registers, with a ``tile`` of as many warpgroups as there are."""
    kernel, problem = program.main, program.problem
    rows, columns = _share(kernel)
    groups = kernel.consumers // WARPGROUP
    found = tuple(_halved(kernel, rows, columns))
    if kernel.producers.pingpong == 1:
        for row, column in found:
            more = groups * (rows // row) * (columns // column)
            if _fits(kernel, row, column, more):
                return f"warp_tile {format_sizes(((problem.m, row), (problem.n, column)))}"
    fitting = (share for share in found if _fits(kernel, *share, groups))
    return _with_tile(program, *next(fitting, found[-1] if found else (rows, columns)))


def _halved(kernel: Kernel, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Ever smaller shares of a warpgroup that instructions have and that divide its own."""
    atom = ATOMS[kernel.spread.atom]
    while True:
        sizes = {"row": rows, "column": columns}
        for side in sorted(sizes, key=lambda side: -sizes[side]):
            unit = atom.m if side == "row" else atom.n
            fewer = (s for s in range(sizes[side] - unit, 0, -unit) if sizes[side] % s == 0)
            able = (s for s in fewer if side == "row" or atom.columns(s) == s)
            smaller = next(able, 0)
            if smaller:
                sizes[side] = smaller
                break
        else:
            return
        rows, columns = sizes["row"], sizes["column"]
        yield rows, columns


def _fits(kernel: Kernel, rows: int, columns: int, groups: int) -> bool:
    """Whether the accumulators of ``groups`` warpgroups with such shares fit."""
    consumers, producers = groups * WARPGROUP, kernel.producers.threads
    blocks = kernel.bounds.blocks
    if consumers + producers > MAX_THREADS:
        return False
    accumulators = rows * columns // WARPGROUP * (2 if promotion_of(kernel) is not None else 1)
    atom = ATOMS[kernel.spread.atom]
    one = atom.m * columns // atom.lanes + BESIDE_WGMMA
    has = registers_when_multiplying(consumers, producers, blocks)
    at_launch = registers_at_launch(consumers + producers, blocks)
    return accumulators + BESIDE_WGMMA <= has and one <= at_launch


def _share(kernel: Kernel) -> tuple[int, int]:
    """Rows and columns of a warpgroup's tile."""
    rows, columns = kernel.spread.axes
    atom = ATOMS[kernel.spread.atom]
    return rows.extent // rows.warps * atom.warps("row"), columns.extent // columns.warps


def _with_tile(program: Program, rows: int, columns: int) -> str:
    """The lines for as many warpgroups with other shares."""
    kernel, problem = program.main, program.problem
    pipeline, now = pipeline_of(kernel), _share(kernel)
    assert pipeline is not None
    whole = (
        a.extent // old * new
        for a, old, new in zip(kernel.spread.axes, now, (rows, columns), strict=True)
    )
    sizes = zip((problem.m, problem.n, problem.k), (*whole, pipeline.step), strict=True)
    share = zip((problem.m, problem.n), (rows, columns), strict=True)
    return f"tile {format_sizes(sizes)} and warp_tile {format_sizes(share)}"
