"""What a GPU allows, checked once, and blamed on the directive that asked for too much."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from gemmgen.errors import Mistake, ScheduleError
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Buffer, Program, Space
from gemmgen.schedule.model import Require, Schedule
from gemmgen.source import Span
from gemmgen.target import MAX_REGISTERS, MAX_THREADS, OVERHEAD, TARGETS, WARP


def check_limits(schedule: Schedule, program: Program, kernel: LoweredKernel) -> None:
    """Threads, shared memory and registers within the target's, and within the ``require``
    lines."""
    mistakes = (
        *_threads(schedule, program, kernel),
        *_shared(schedule, program, kernel),
        *_registers(schedule, program),
        *_required(schedule, kernel),
    )
    if mistakes:
        raise ScheduleError(schedule.source, mistakes)


def shared_bytes(kernel: LoweredKernel) -> int:
    """Bytes of shared memory of a block."""
    return kernel.interface.static_shared + kernel.interface.dynamic_shared


def _place(schedule: Schedule, *names: str) -> Span | None:
    """Where the first of these directives that the schedule has stands."""
    for name in names:
        for directive in schedule.directives:
            if directive.name == name:
                return directive.span
    return None


def _threads(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    spread = program.main.spread
    count = " x ".join(str(a.threads) for a in spread.axes)
    place = _place(schedule, "register_block", "tile")
    note = f"{count} = {kernel.threads} threads; a block has at most {MAX_THREADS}"
    if kernel.threads > MAX_THREADS:
        if any(d.name == "register_block" for d in schedule.directives):
            hint = "a larger register_block, or a smaller tile"
        else:
            shares = (f"{a.letter}={gcd(a.extent, 8)}" for a in spread.axes)
            hint = f"register_block {' '.join(shares)} gives each thread more to do"
        yield Mistake("the tile needs too many threads", place, hint, (note,))
    elif kernel.threads % WARP:
        note = f"{count} = {kernel.threads} threads; {kernel.threads} % {WARP} = "
        note += str(kernel.threads % WARP)
        hint = f"tile and register_block sizes whose quotients multiply to a multiple of {WARP}"
        yield Mistake("a block's threads must fill whole warps", place, hint, (note,))


def _shared(schedule: Schedule, program: Program, kernel: LoweredKernel) -> Iterator[Mistake]:
    target, used = TARGETS[schedule.target], shared_bytes(kernel)
    if used <= target.shared:
        return
    tiles = [b for b in program.main.buffers if b.space is Space.SHARED]
    place = _place(schedule, "double_buffer", "cache_shared")
    if all(b.layout.stages == 1 for b in tiles):
        place = _place(schedule, "cache_shared")
    yield Mistake(
        f"the tiles do not fit in the shared memory of {target.name}",
        place,
        "a smaller tile" + (", or fewer stages" if any(b.layout.stages > 1 for b in tiles) else ""),
        (
            *(_bytes(b) for b in tiles),
            f"{used:,} bytes needed, {target.shared:,} allowed per block",
        ),
    )


def _bytes(tile: Buffer) -> str:
    sizes = [tile.extent(letter) for letter in tile.layout.order]
    row = f"({sizes[-1]} + {tile.layout.pad})" if tile.layout.pad else str(sizes[-1])
    stages = f"{tile.layout.stages} stages x " if tile.layout.stages > 1 else ""
    total = tile.layout.stages * sizes[0] * (sizes[-1] + tile.layout.pad) * 4
    return f"{tile.name}: {stages}{sizes[0]} x {row} x 4 bytes = {total:,}"


def _registers(schedule: Schedule, program: Program) -> Iterator[Mistake]:
    """A thread's own arrays must fit in registers: indexed arrays elsewhere are slow memory."""
    tiles = [b for b in program.main.buffers if b.space is Space.REGISTER and b.spread]
    counts = [(b.name, b.layout.stages * b.spread.registers) for b in tiles if b.spread]
    total = sum(count for _, count in counts)
    if total + OVERHEAD > MAX_REGISTERS:
        yield Mistake(
            "a thread's micro-tile does not fit in its registers",
            _place(schedule, "register_block", "tile"),
            "a smaller register_block, such as 8 x 8 or 8 x 16",
            (
                " + ".join(f"{count} ({name})" for name, count in counts)
                + f" + {OVERHEAD} for addresses = {total + OVERHEAD}; "
                f"a thread has {MAX_REGISTERS}",
            ),
        )


def _required(schedule: Schedule, kernel: LoweredKernel) -> Iterator[Mistake]:
    """``require shared`` and ``require threads``; registers and spills are known after
    compiling."""
    known = {"shared": shared_bytes(kernel), "threads": kernel.threads}
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
    """Does ``value`` satisfy the requirement?"""
    return value <= require.limit if require.op == "<=" else value == require.limit
