"""What a GPU allows, checked once, and blamed on the directive that asked for too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.source import Span, remainder
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.ir.occupancy import (
    REGISTER,
    SETS_REGISTERS,
    blocks_per_multiprocessor,
    registers_allowed,
    registers_by_duty,
    registers_of,
)
from gemmgen.ir.target import (
    MAX_REGISTERS,
    MAX_THREADS,
    MAX_TILE,
    OVERHEAD,
    REGISTER_FILE,
    TARGETS,
    WARP,
)
from gemmgen.lower.residency import check_residency
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Require, Schedule
from gemmgen.schedule.roles import roles

SHORTEST = 4
"""The shortest step along k that a hint proposes."""
MOST_SUMS = 128
"""Registers of sums that leave a lane room for fragments."""


def check_limits(schedule: Schedule, program: Program, kernel: LoweredKernel) -> None:
    """Threads, shared memory and registers within the target's, and within the ``require``
    lines."""
    block = (
        # A micro-tile that must change changes the threads too.
        *(tuple(_registers(schedule, program)) or tuple(_threads(schedule, program, kernel))),
        *_shared(schedule, program, kernel),
    )
    mistakes = (
        *(block or tuple(check_residency(schedule, program, kernel, _sums(program)))),
        *_required(schedule, kernel),
    )
    if mistakes:
        raise ScheduleError(schedule.source, mistakes)


def _span(schedule: Schedule, *names: str) -> Span | None:
    """The span of the first of these directives that the schedule has."""
    for name in names:
        for directive in schedule.directives:
            if directive.name == name:
                return directive.span
    return None


def fill_warps(threads: int) -> bool:
    """Whether a block of so many threads has whole warps, and no more than a block may have."""
    return 0 < threads <= MAX_THREADS and threads % WARP == 0


def _threads(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    spread = program.main.spread
    axes = spread.axes
    if fill_warps(kernel.threads):
        return
    lanes = f" x {spread.lanes_per_sum} lanes" if spread.k_layout else ""
    consumers, producers = spread.threads, kernel.threads - spread.threads
    count = f"{' x '.join(str(a.threads) for a in axes)}{lanes} = {consumers} threads"
    if any(a.registers > 1 for a in axes):
        shares = (f"{a.extent} / {a.registers}" for a in axes)
        whole = f"({') x ('.join(shares)}){lanes}"
        count = f"{whole} = {count}"
        if spread.lanes_per_piece > 1:
            count = f"{whole} = {consumers // WARP} warps = {consumers} threads"
    if producers:
        count += f", and {producers} of the producer: {kernel.threads}"
    notes = [f"{count}; a block has at most {MAX_THREADS}"]
    message = "the tile needs too many threads"
    if kernel.threads <= MAX_THREADS:
        notes = [f"{count}; {remainder(kernel.threads, WARP)}"]
        message = "a block's threads must fill whole warps"
    if _span(schedule, "tile") is None:
        sizes = format_sizes((a.letter, a.extent) for a in axes)
        notes.insert(0, f"there is no tile line, which means tile {sizes}")
    span = _span(schedule, "register_block", "tile")
    hint = _nearest_tile(schedule, program)
    share = _share(program) if kernel.threads > MAX_THREADS else None
    if share and _span(schedule, "warp_tile") is None:
        hint = f"{share} gives each {'warp' if spread.k_layout else 'thread'} more to do"
    yield Mistake(message, span, hint, tuple(notes))


def _share(program: Program) -> str | None:
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
    words = BYTES[main.buffer("acc").dtype] // REGISTER
    ahead = max((b.stages for b in main.buffers if b.name.endswith("_frag")), default=1)
    for sizes in product((8, 4, 16, 2, 1), repeat=2):
        pairs = tuple(zip(tile, sizes, strict=True))
        threads = prod(n // size for n, size in pairs) * main.spread.lanes_per_sum
        divides = not any(n % size for n, size in pairs)
        registers = words * (prod(sizes) + ahead * sum(sizes)) + OVERHEAD
        fits = registers <= registers_allowed(main, program.target)
        if divides and fill_warps(threads + _producers(program)) and fits:
            return sizes
    return None


def _smaller_tile(program: Program) -> str:
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


def _nearest_tile(schedule: Schedule, program: Program) -> str:
    """The ``tile`` nearest to the one there is whose threads fill whole warps of one block."""
    spread = program.main.spread
    first, second = spread.axes
    by_warp = spread.by_warp or spread.lanes_per_piece > 1
    steps = [a.extent // a.warps if by_warp else a.registers for a in (first, second)]
    lanes = first.lanes * second.lanes * spread.lanes_per_piece if by_warp else spread.lanes_per_sum
    most = (MAX_THREADS - _producers(program)) // lanes
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
    threads += _producers(program)
    return f"tile {first.letter}={one} {second.letter}={other}{step}, which has {threads} threads"


def _producers(program: Program) -> int:
    """Threads of a block that only copy."""
    return program.main.threads - program.main.spread.threads


def _shared(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    target, used = TARGETS[schedule.target], kernel.interface.shared
    if used <= target.shared:
        return
    tiles = [b for b in program.main.buffers if b.space is Space.SHARED]
    span = _span(schedule, "double_buffer", "cache_shared")
    if all(b.stages == 1 for b in tiles):
        span = _span(schedule, "cache_shared")
    hint = _fitting_step(schedule, program, tiles)
    yield Mistake(
        f"the tiles do not fit in the shared memory of {target.name}",
        span,
        hint + (", or fewer stages" if any(b.stages > 1 for b in tiles) else ""),
        (
            *(_bytes(b) for b in tiles),
            f"{used:,} bytes needed, {target.shared:,} allowed per block",
        ),
    )


def _fitting_step(schedule: Schedule, program: Program, tiles: list[Buffer]) -> str:
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


def _bytes(tile: Buffer) -> str:
    sizes = [tile.extent(letter) for letter in tile.letters]
    row = f"({sizes[-1]} + {tile.pad})" if tile.pad else str(sizes[-1])
    stages = f"{tile.stages} stages x " if tile.stages > 1 else ""
    size = BYTES[tile.dtype]
    return f"{tile.name}: {stages}{sizes[0]} x {row} x {size} bytes = {tile.bytes:,}"


def _registers(schedule: Schedule, program: Program) -> Iterator[Mistake]:
    """A thread's own arrays must fit in registers: indexed arrays elsewhere are slow memory."""
    tiles = [b for b in program.main.buffers if b.space is Space.REGISTER and b.spread]
    counts = [(b.name, registers_of(b)) for b in tiles]
    total = sum(count for _, count in counts)
    of_warp = program.main.spread.lanes_per_piece > 1
    share = _shorter_step(program, tiles) or _share(program) or _smaller_tile(program)
    most = registers_allowed(program.main, program.target)
    if total + OVERHEAD > most:
        yield Mistake(
            f"a thread's {'fragments do' if of_warp else 'micro-tile does'} not fit in its "
            "registers",
            _span(schedule, *(("warp_tile",) if of_warp else ()), "register_block", "tile"),
            _taken(program, total) or (_smaller_warp(program) if of_warp else share),
            (
                " + ".join(f"{count} ({name})" for name, count in counts)
                + f" + {OVERHEAD} for addresses = {total + OVERHEAD}; "
                f"a thread has {most}{_shared_out(program, most)}",
            ),
        )


def _shared_out(program: Program, most: int) -> str:
    """Why a thread has no more, if others of its block only copy."""
    main, producers = program.main, _producers(program)
    if not producers:
        return ""
    blocks = blocks_per_multiprocessor(main)
    launched = f"{blocks} x {main.threads}" if blocks > 1 else f"{main.threads}"
    if (found := registers_by_duty(main, program.target)) is not None:
        return f": the producer keeps {found[0]} of its own"
    return f": {REGISTER_FILE:,} / ({launched} threads)" if most < MAX_REGISTERS else ""


def _taken(program: Program, total: int) -> str | None:
    """The target on which consumers take enough registers from the producer, if that helps."""
    if total + OVERHEAD > registers_allowed(program.main, SETS_REGISTERS):
        return None
    return f"target {SETS_REGISTERS}, where consumers take registers from the producer"


def _shorter_step(program: Program, tiles: list[Buffer]) -> str | None:
    """The ``tile`` with the longest step that leaves a lane room for its sums."""
    along_k, pipeline = program.main.spread.k_layout, pipeline_of(program.main)
    if along_k is None or pipeline is None:
        return None
    sums = sum(registers_of(b) for b in tiles if b.name == "acc")
    operands = sum(registers_of(b) for b in tiles) - sums
    step, least = pipeline.step, along_k.lanes * along_k.width
    while step % (2 * least) == 0:
        step, operands = step // 2, -(-operands // 2)
        if sums + operands + OVERHEAD <= MAX_REGISTERS:
            return f"tile {format_sizes((*program.main.work.tile, (along_k.letter, step)))}"
    return None


def _smaller_warp(program: Program) -> str:
    """The ``warp_tile`` with the greater side halved until the sums leave room for fragments."""
    axes = {a.letter: a.registers for a in program.main.spread.axes}
    sizes = dict(axes)
    atom, problem = ATOMS[program.main.spread.atom], program.problem
    sides, lanes = {problem.m: atom.m, problem.n: atom.n}, atom.lanes
    while prod(sizes.values()) > MOST_SUMS * lanes:
        letter = max(sizes, key=lambda x: sizes[x])
        side, now = sides[letter], sizes[letter]
        sizes[letter] = max(s for s in range(side, now, side) if axes[letter] % s == 0)
    return f"warp_tile {format_sizes(sizes.items())}"


def _sums(program: Program) -> int:
    return registers_of(program.main.buffer("acc"))


def _required(schedule: Schedule, kernel: LoweredKernel) -> Iterator[Mistake]:
    """``require shared`` and ``require threads``; registers and spills are known after
    compiling."""
    known = {"shared": kernel.interface.shared, "threads": kernel.threads}
    for require in schedule.requires:
        value = known.get(require.quantity)
        if value is not None and not meets(require, value):
            unit = " bytes" if require.quantity == "shared" else ""
            yield Mistake(
                f"require {require.quantity} {require.op} {require.limit:,}{unit} does not hold",
                require.span,
                "change the tile, or the requirement",
                (f"{require.quantity} = {value:,}{unit}",),
            )


def meets(require: Require, value: int) -> bool:
    """Whether ``value`` satisfies the requirement."""
    return value <= require.limit if require.op == "<=" else value == require.limit
