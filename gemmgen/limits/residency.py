"""Whether as many blocks fit on a multiprocessor as ``launch_bounds`` asks for."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import Mistake
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Program
from gemmgen.ir.target import MAX_REGISTERS, REGISTER_FILE, REGISTER_UNIT, TARGETS, Target
from gemmgen.schedule.model import Schedule


def check_residency(
    schedule: Schedule, program: Program, kernel: LoweredKernel, accumulators: int
) -> Iterator[Mistake]:
    """The first resource that the blocks exceed on the target; ``accumulators``: the registers of a
    thread's accumulators."""
    asked = program.main.bounds.blocks
    directive = next((d for d in schedule.directives if d.name == "launch_bounds"), None)
    if directive is None or not asked:
        return
    target = TARGETS[schedule.target]
    short = _shortage(target, kernel, accumulators, asked)
    if short is None:
        return
    message, note = short
    most = next(
        (n for n in range(asked, 0, -1) if not _shortage(target, kernel, accumulators, n)), 0
    )
    yield Mistake(
        f"launch_bounds blocks={asked}: {message}",
        next(a.span for a in directive.arguments if a.name == "blocks"),
        f"blocks={most}, the most that fit" if most else "remove the line",
        (note,),
    )


def _shortage(
    target: Target, kernel: LoweredKernel, accumulators: int, blocks: int
) -> tuple[str, str] | None:
    """What is wrong with this many blocks, and the arithmetic; None if they fit."""
    threads = blocks * kernel.threads
    shared = kernel.interface.shared
    if threads > target.threads:
        return (
            "these threads do not fit on an SM",
            f"{blocks} x {kernel.threads} = {threads:,} threads; {target.name} holds "
            f"{target.threads:,}",
        )
    if blocks > target.blocks:
        return "these blocks do not fit on an SM", f"{target.name} holds {target.blocks}"
    taken = blocks * (shared + target.reserved)
    if shared and taken > target.all_shared:
        return (
            "their tiles do not fit in an SM's shared memory",
            f"{blocks} x ({shared:,} + {target.reserved:,} of the system's) = {taken:,} bytes; "
            f"{target.name} has {target.all_shared:,}",
        )
    registers = min(REGISTER_FILE // threads // REGISTER_UNIT * REGISTER_UNIT, MAX_REGISTERS)
    if accumulators >= registers:
        return (
            "the accumulators alone do not fit in a thread's registers",
            f"{REGISTER_FILE:,} registers / {threads:,} threads, in eights, is {registers} each; "
            f"a thread's accumulators take {accumulators}, and more is needed",
        )
    return None


def fits(target: Target, threads: int, blocks: int) -> bool:
    """Whether ``__launch_bounds__`` may ask for this many blocks on ``target``: compilers ignore
    more, with a warning."""
    return blocks <= 1 or (blocks * threads <= target.threads and blocks <= target.blocks)
