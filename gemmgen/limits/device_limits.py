"""What a GPU allows, checked once, and blamed on the directive that asked for too much."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.source import Span, remainder
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer, Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.ir.occupancy import (
    SETS_REGISTERS,
    blocks_per_multiprocessor,
    overhead_of,
    registers_allowed,
    registers_by_role,
    registers_of,
)
from gemmgen.ir.target import (
    MAX_REGISTERS,
    MAX_THREADS,
    REGISTER_FILE,
    TARGETS,
    WARP,
    fill_warps,
)
from gemmgen.limits.fitting import (
    fitting_step,
    larger_share,
    nearest_tile,
    shorter_step,
    smaller_tile,
    smaller_warp,
)
from gemmgen.limits.launch_registers import (
    check_blocks,
    check_launch_registers,
    smaller_warpgroup,
)
from gemmgen.limits.residency import check_residency
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Require, Schedule


def check_limits(schedule: Schedule, program: Program, kernel: LoweredKernel) -> None:
    """Threads, shared memory and registers within the target's, and within the ``require``
    lines."""
    block = (
        # A micro-tile that must change changes the threads too.
        *(
            tuple(_blocks(schedule, program, kernel))
            or tuple(_registers(schedule, program))
            or tuple(_threads(schedule, program, kernel))
            or tuple(check_launch_registers(schedule, program))
        ),
        *_shared(schedule, program, kernel),
    )
    mistakes = (
        *(block or tuple(check_residency(schedule, program, kernel, _accumulators(program)))),
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


def _threads(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    spread = program.main.spread
    axes = spread.axes
    if fill_warps(kernel.threads):
        return
    lanes = f" x {spread.lanes_per_sum} lanes" if spread.k_layout else ""
    consumers, producers = spread.threads, program.main.producers.threads
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
        notes.insert(0, f"without tile it is tile {sizes}")
    span = _span(schedule, "register_block", "tile")
    hint = nearest_tile(schedule, program)
    share = larger_share(program) if kernel.threads > MAX_THREADS else None
    if share and _span(schedule, "warp_tile") is None:
        hint = f"{share} gives each {'warp' if spread.k_layout else 'thread'} more to do"
    yield Mistake(message, span, hint, tuple(notes))


def _shared(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    target, used = TARGETS[schedule.target], kernel.interface.shared
    if used <= target.shared:
        return
    tiles = [b for b in program.main.buffers if b.space is Space.SHARED]
    span = _span(schedule, "double_buffer", "cache_shared")
    if all(b.stages == 1 for b in tiles):
        span = _span(schedule, "cache_shared")
    hint = fitting_step(schedule, program, tiles)
    yield Mistake(
        f"the tiles do not fit in the shared memory of {target.name}",
        span,
        hint + (", or fewer stages" if any(b.stages > 1 for b in tiles) else ""),
        (
            *(_bytes(b) for b in tiles),
            f"{used:,} bytes needed, {target.shared:,} allowed per block",
        ),
    )


def _bytes(tile: Buffer) -> str:
    sizes = [tile.extent(letter) for letter in tile.letters]
    row = f"({sizes[-1]} + {tile.pad})" if tile.pad else str(sizes[-1])
    stages = f"{tile.stages} stages x " if tile.stages > 1 else ""
    stages += f"{tile.parts} parts x " if tile.parts > 1 else ""
    size = BYTES[tile.dtype]
    rows = f"{tile.atom_columns} atom columns x " if tile.spare and tile.atom_columns > 1 else ""
    rows += f"({sizes[0]} + {tile.spare})" if tile.spare else str(sizes[0])
    row = str(tile.atom_width) if tile.spare and tile.atom_width else row
    return f"{tile.name}: {stages}{rows} x {row} x {size} bytes = {tile.bytes:,}"


def _blocks(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    """Resident blocks of a kernel that multiplies by ``wgmma``: more than a multiprocessor holds,
    or than leave it enough registers."""
    if ATOMS[program.main.spread.atom].in_place and program.main.bounds.blocks > 1:
        found = tuple(check_residency(schedule, program, kernel, _accumulators(program)))
        yield from found or check_blocks(schedule, program)


def _registers(schedule: Schedule, program: Program) -> Iterator[Mistake]:
    """A thread's own arrays must fit in registers: indexed arrays elsewhere are slow memory."""
    tiles = [b for b in program.main.buffers if b.space is Space.REGISTER and b.spread]
    counts = [(b.name, registers_of(b)) for b in tiles]
    total = sum(count for _, count in counts)
    of_warp = program.main.spread.collective
    most = registers_allowed(program.main, program.target)
    beside = overhead_of(program.main)
    if total + beside > most:
        yield Mistake(
            f"a thread's {_held(program)} not fit in its " "registers",
            _span(schedule, *(("warp_tile",) if of_warp else ()), "register_block", "tile"),
            _taken(program, total) or _smaller(program, tiles),
            (
                " + ".join(f"{count} ({name})" for name, count in counts)
                + f" + {beside} for addresses = {total + beside}; "
                f"a thread has {most}{_shared_out(program, most)}",
            ),
        )


def _smaller(program: Program, tiles: list[Buffer]) -> str:
    """Lines with smaller shares of a warpgroup, a warp or a thread."""
    spread = program.main.spread
    if ATOMS[spread.atom].in_place:
        return smaller_warpgroup(program)
    if spread.collective:
        return smaller_warp(program)
    return shorter_step(program, tiles) or larger_share(program) or smaller_tile(program)


def _held(program: Program) -> str:
    """What a thread holds, of an instruction's pieces or of its own."""
    atom = ATOMS[program.main.spread.atom]
    if atom.in_place:
        return "accumulators do"
    return "fragments do" if program.main.spread.collective else "micro-tile does"


def _shared_out(program: Program, most: int) -> str:
    """Why a thread has no more, if others of its block only copy."""
    main = program.main
    blocks = blocks_per_multiprocessor(main)
    launched = f"{blocks} x {main.threads}" if blocks > 1 else f"{main.threads}"
    if (found := registers_by_role(main, program.target)) is not None:
        return f": the producer keeps {found[0]} of its own"
    return f": {REGISTER_FILE:,} / ({launched} threads)" if most < MAX_REGISTERS else ""


def _taken(program: Program, total: int) -> str | None:
    """The target on which consumers take enough registers from the producer, if that helps."""
    main = program.main
    if total + overhead_of(main) > registers_allowed(main, SETS_REGISTERS):
        return None
    return f"target {SETS_REGISTERS}, where consumers take registers from the producer"


def _accumulators(program: Program) -> int:
    return registers_of(program.main.accumulator)


def _required(schedule: Schedule, kernel: LoweredKernel) -> Iterator[Mistake]:
    """``require shared`` and ``require threads``; registers and spills are known after
    compiling."""
    known = {"shared": kernel.interface.shared, "threads": kernel.threads}
    for require in schedule.requires:
        value = known.get(require.quantity)
        if value is not None and not satisfies(require, value):
            unit = " bytes" if require.quantity == "shared" else ""
            yield Mistake(
                f"require {require.quantity} {require.op} {require.limit:,}{unit} does not hold",
                require.span,
                "change the tile, or the requirement",
                (f"{require.quantity} = {value:,}{unit}",),
            )


def satisfies(require: Require, value: int) -> bool:
    """Whether ``value`` satisfies the requirement."""
    return value <= require.limit if require.op == "<=" else value == require.limit
