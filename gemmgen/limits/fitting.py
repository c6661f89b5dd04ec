"""Sizes that fit: the lines that hints of ``limits`` propose in place of those that ask for too
much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction, pipeline_of, promotion_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.occupancy import REGISTER, registers_allowed, registers_of
from gemmgen.ir.target import (
    MAX_REGISTERS,
    MAX_THREADS,
    MAX_TILE,
    OVERHEAD,
    TARGETS,
    WARP,
    fill_warps,
)
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.roles import roles

SHORTEST = 4
"""The shortest step along k that a hint proposes."""
MOST_ACCUMULATORS = 128
"""Registers of accumulators that leave a lane room for fragments."""


def larger_share(program: Program) -> str | None:
    """A ``register_block`` whose threads fill whole warps of one block and whose arrays fit in
    registers, if there is one."""
    axes = program.main.spread.axes
    sizes = _micro_tile(program, tuple(a.extent for a in axes))
    if sizes is None:
        return None
    return f"register_block {format_sizes(zip((a.letter for a in axes), sizes, strict=True))}"


def _micro_tile(program: Program, tile: tuple[int, ...]) -> tuple[int, ...] | None:
    """The micro-tile of such a ``register_block`` for a tile of these extents."""
    main = program.main
    words = BYTES[main.accumulator.dtype] // REGISTER
    ahead = max((b.stages for b in main.buffers if b.role is Role.FRAGMENT), default=1)
    for sizes in product((8, 4, 16, 2, 1), repeat=2):
        pairs = tuple(zip(tile, sizes, strict=True))
        threads = prod(n // size for n, size in pairs) * main.spread.lanes_per_sum
        divides = not any(n % size for n, size in pairs)
        registers = words * (prod(sizes) + ahead * sum(sizes)) + OVERHEAD
        fits = registers <= registers_allowed(main, program.target)
        if divides and fill_warps(_of_block(main, threads)) and fits:
            return sizes
    return None


def _of_block(main: Kernel, threads: int) -> int:
    """The threads of a block, if ``threads`` of them share a tile."""
    return threads * main.producers.pingpong + main.producers.threads


def smaller_tile(program: Program) -> str:
    """The ``tile`` with the longer side halved until a ``register_block`` fits, and that."""
    axes, pipeline = program.main.spread.axes, pipeline_of(program.main)
    sizes = [a.extent for a in axes]
    while (found := _micro_tile(program, tuple(sizes))) is None and max(sizes) > 1:
        sizes[sizes.index(max(sizes))] //= 2
    if found is None:
        return "a smaller register_block, such as 8 x 8"
    step = f" {pipeline.letter}={pipeline.step}" if pipeline else ""
    tile, share = (
        format_sizes(zip((a.letter for a in axes), of, strict=True)) for of in (sizes, found)
    )
    return f"tile {tile}{step} and register_block {share}"


def nearest_tile(schedule: Schedule, program: Program) -> str:
    """The ``tile`` nearest to the one there is whose threads fill whole warps of one block."""
    spread = program.main.spread
    first, second = spread.axes
    by_warp = spread.by_warp or spread.lanes_per_piece > 1
    steps = [a.extent // a.warps if by_warp else a.registers for a in (first, second)]
    lanes = first.lanes * second.lanes * spread.lanes_per_piece if by_warp else spread.lanes_per_sum
    producers = program.main.producers
    most = (MAX_THREADS - producers.threads) // producers.pingpong // lanes
    found = (
        (a * steps[0], b * steps[1], a * b * lanes)
        for a in range(1, most + 1)
        for b in range(1, most // a + 1)
        if a * b * lanes % WARP == 0 and a * steps[0] <= MAX_TILE and b * steps[1] <= MAX_TILE
    )

    def distance(sizes: tuple[int, int, int]) -> float:
        one, other, _ = sizes
        return abs(one / first.extent - 1) + abs(other / second.extent - 1)

    one, other, threads = min(found, key=distance)
    pipeline = pipeline_of(program.main)
    step = f" {pipeline.letter}={pipeline.step}" if pipeline else ""
    threads = _of_block(program.main, threads)
    return f"tile {first.letter}={one} {second.letter}={other}{step}, which has {threads} threads"


def fitting_step(schedule: Schedule, program: Program, tiles: list[Buffer]) -> str:
    """The ``tile`` with the longest step along the contracted letter that fits."""
    m, n, k = roles(schedule.gemm)
    sizes = dict(program.main.work.tile)
    least = max(SHORTEST, ATOMS[program.main.spread.atom].k)
    for step in (1 << power for power in range(11, 1, -1) if 1 << power >= least):
        used = sum(_resized(tile, {k: step}).bytes for tile in tiles)
        longest = next((t.extent(k) for t in tiles if k in t.letters), 0)
        if step < longest and used <= TARGETS[schedule.target].shared:
            return f"tile {m}={sizes[m]} {n}={sizes[n]} {k}={step} needs {used:,} bytes"
    return "a smaller tile"


def _resized(tile: Buffer, changed: Mapping[str, int]) -> Buffer:
    """A tile with other extents along some letters."""
    shape = ((letter, changed.get(letter, size)) for letter, size in tile.shape)
    return replace(tile, shape=tuple(shape))


def shorter_step(program: Program, tiles: list[Buffer]) -> str | None:
    """The ``tile`` with the longest step that leaves a lane room for its accumulators."""
    along_k, pipeline = program.main.spread.k_layout, pipeline_of(program.main)
    if along_k is None or pipeline is None:
        return None
    accumulators = sum(registers_of(b) for b in tiles if b.role is Role.ACCUMULATOR)
    operands = sum(registers_of(b) for b in tiles) - accumulators
    step, least = pipeline.step, along_k.lanes * along_k.width
    while step % (2 * least) == 0:
        step, operands = step // 2, -(-operands // 2)
        if accumulators + operands + OVERHEAD <= MAX_REGISTERS:
            return f"tile {format_sizes((*program.main.work.tile, (along_k.letter, step)))}"
    return None


def _of_fragments(program: Program, axes: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    """Registers of fragments of a warp's tile of ``sizes`` in place of ``axes``."""
    main = program.main
    return sum(
        registers_of(main.buffer(name)) * sizes[letter] // axes[letter]
        for name in (contraction(main).a, contraction(main).b)
        for letter in main.buffer(name).letters
        if letter in sizes
    )


def smaller_warp(program: Program) -> str:
    """The ``warp_tile`` with the greater side halved until the accumulators leave room for
    fragments; where accumulators are promoted into as many others, with a ``tile`` of as many
    warps."""
    atom, problem = ATOMS[program.main.spread.atom], program.problem
    spread = program.main.spread
    axes = {a.letter: a.extent // a.warps for a in spread.axes}
    sizes, promotes = dict(axes), promotion_of(program.main) is not None
    sides, lanes = {problem.m: atom.m, problem.n: atom.n}, atom.lanes

    def is_too_large() -> bool:
        accumulators = prod(sizes.values()) * (2 if promotes else 1) // lanes
        return accumulators > MOST_ACCUMULATORS or (
            contraction(program.main).parts > 1
            and accumulators + _of_fragments(program, axes, sizes) + OVERHEAD > MAX_REGISTERS
        )

    while is_too_large():
        letter = max(sizes, key=lambda x: sizes[x])
        side, now = sides[letter], sizes[letter]
        sizes[letter] = max(s for s in range(side, now, side) if axes[letter] % s == 0)
    share = f"warp_tile {format_sizes(sizes.items())}"
    if not promotes:
        return share
    whole = ((a.letter, a.extent * sizes[a.letter] // axes[a.letter]) for a in spread.axes)
    pipeline = pipeline_of(program.main)
    assert pipeline is not None
    return f"tile {format_sizes((*whole, (pipeline.letter, pipeline.step)))} and {share}"
