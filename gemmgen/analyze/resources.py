"""The resources of a block, the number of blocks that fit an SM, and the waves of the grid.

The rules are those of NVIDIA's occupancy calculator: registers are allocated to warps in units of
256, within each of an SM's four parts; every block takes 1 KiB of shared memory for the system
(from sm_80 on).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from gemmgen.analyze.loop import LoopCode, loop_code
from gemmgen.analyze.register_estimate import compiled_registers
from gemmgen.base.errors import CannotCheck, ScheduleError, UsageError
from gemmgen.base.record import record
from gemmgen.gpu.compiler import compile_text
from gemmgen.gpu.gpus import GPC, GPUS, REGISTERS, SCHEDULERS, Gpu
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.target import WARP
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.model import Schedule

REGISTER_UNIT = 256
SHARED_UNIT = 128


_ACCESS = re.compile(r"^\s*(?:@\S+ )?((?:ld|st)\.(?:global|shared))\S*?(\.v[24])?\.[bfu]\d+", re.M)
_COPY = re.compile(r"^\s*cp\.async\.c[ag]\.shared\.global \[\S+\], \[\S+\], (\d+)", re.M)
_ENGINE = re.compile(r"^\s*(cp\.async\.bulk\.tensor\.\dd|mbarrier\.[a-z_]+)", re.M)
_SUFFIX = {1: "", 2: ".v2", 4: ".v4"}
_OF_BYTES = {"4": "", "8": ".v2", "16": ".v4"}


@record
class Resources:
    """Per block: threads, bytes of shared memory.  Per thread: registers, and the bytes of spills
    that the ``compiler`` reports.

    Without a compiler ``registers`` are estimated, spills None, and ``unknown`` says why.
    """

    threads: int
    shared: int
    registers: int
    spill_stores: int | None = None
    spill_loads: int | None = None
    compiler: str = ""
    unknown: str = ""
    instructions: tuple[tuple[str, int], ...] = ()
    """Memory instructions in the PTX, by name and width in elements: whether the compiler joined
    neighbouring accesses shows here."""
    loop: LoopCode | None = None
    unread: str = ""
    """Why there is no ``loop``; empty if there is one."""

    @property
    def estimated(self) -> bool:
        """Whether ``registers`` are an estimate."""
        return bool(self.unknown)

    @property
    def spills(self) -> int | None:
        """Bytes of spill stores and of spill loads, added."""
        if self.spill_stores is None or self.spill_loads is None:
            return None
        return self.spill_stores + self.spill_loads

    @property
    def read_widths(self) -> frozenset[int] | None:
        """Elements of the reads of shared memory in the PTX; None without a compiler."""
        if self.unknown:
            return None
        names = {name for name, _ in self.instructions}
        return frozenset(width for width in (1, 2, 4) if f"ld.shared{_SUFFIX[width]}" in names)


@record
class Occupancy:
    """Blocks that an SM holds at once; ``limits`` says how many each resource allows, and
    ``limiter`` which is the least."""

    blocks: int
    warps: int
    most_warps: int
    limits: tuple[tuple[str, int], ...]

    @property
    def limiter(self) -> str:
        return min(self.limits, key=lambda limit: limit[1])[0]

    @property
    def share(self) -> float:
        """Resident warps as a share of the most that an SM can hold."""
        return self.warps / self.most_warps


@record
class Waves:
    """The waves of a grid of ``blocks``, if ``per_wave`` run at once on ``sms`` SMs; ``walked``:
    ``blocks`` counts the tiles of persistent blocks."""

    blocks: int
    per_wave: int
    sms: int
    walked: bool = False

    @property
    def launched(self) -> int:
        """Blocks of the launch."""
        return min(self.blocks, self.per_wave) if self.walked else self.blocks

    @property
    def unit(self) -> str:
        """What ``blocks`` counts."""
        return "tiles" if self.walked else "blocks"

    @property
    def of_a_block(self) -> tuple[int, int]:
        """How many tiles, or parts of them, a block of the launch computes: the least and most."""
        return self.blocks // self.launched, -(-self.blocks // self.launched)

    @property
    def balance(self) -> float:
        """The mean number of blocks per SM, as a share of that of the SM with the most. No
        order of the blocks, and no number of resident ones, makes the launch shorter than that
        SM's share."""
        return self.blocks / (-(-self.blocks // self.sms) * self.sms)

    @property
    def count(self) -> int:
        return -(-self.blocks // self.per_wave)

    @property
    def last_fill(self) -> float:
        """The share of the last wave's block slots that are filled."""
        return (self.blocks - (self.count - 1) * self.per_wave) / self.per_wave

    @property
    def efficiency(self) -> float:
        """The share of all waves' block slots that are filled."""
        return self.blocks / (self.count * self.per_wave)


def waves_of(interface: Interface, tiles: int, occupancy: Occupancy, gpu: Gpu) -> Waves:
    """The waves of a launch that computes this many ``tiles``, or parts of them."""
    held = interface.resident or occupancy.blocks
    at_once = held * gpu.sms
    if interface.cluster:
        together = interface.cluster_blocks
        at_once = max(1, clusters_at_once(gpu.sms, held, together)) * together
    return Waves(tiles, at_once, max(1, at_once // held), interface.resident > 0)


def clusters_at_once(sms: int, held: int, blocks: int) -> int:
    """About how many clusters of this many ``blocks`` a GPU runs at a time, ``held`` blocks on an
    SM.

    A cluster lies in one GPC, and its SMs may have room for a part of a cluster more, which nothing
    uses.  GPCs are taken to be as few, and pairs of SMs as evenly distributed, as can be.
    """
    gpcs = -(-sms // GPC)
    pairs, more = divmod(sms // 2, gpcs)
    sizes = [2 * (pairs + (i < more)) for i in range(gpcs)]
    return sum(size * held // blocks for size in sizes)


def resources_of(emitted: Emitted, kernel: LoweredKernel, gpu: Gpu) -> Resources:
    """Registers and spills are those of the text compiled for ``gpu``."""
    interface = emitted.interface
    threads, shared = interface.threads, interface.shared
    arch = architecture(emitted.schedule, gpu)
    try:
        compiled = compile_text(emitted.text, arch)
    except CannotCheck as missing:
        program, why = emitted.program, str(missing)
        registers = compiled_registers(
            program.main, program.target, kernel.blocks, len(program.problem.batch)
        )
        return Resources(threads, shared, registers, unknown=why, unread=why)
    loop, unread = _loop(compiled.cubin)
    return Resources(
        threads,
        shared,
        compiled.registers,
        compiled.spill_stores,
        compiled.spill_loads,
        compiled.compiler,
        instructions=_instructions(compiled.ptx),
        loop=loop,
        unread=unread,
    )


def _loop(cubin: bytes) -> tuple[LoopCode | None, str]:
    """The main loop, and why there is none."""
    try:
        found = loop_code(cubin)
    except CannotCheck as missing:
        return None, str(missing)
    return found, "" if found else "the compiled code has no main loop"


def _instructions(ptx: str) -> tuple[tuple[str, int], ...]:
    """``ld.shared.v4``, ``cp.async.v4``, ``mbarrier.try_wait``: how often the text has each."""
    names = Counter(match[1] + (match[2] or "") for match in _ACCESS.finditer(ptx))
    names.update(f"cp.async{_OF_BYTES[match[1]]}" for match in _COPY.finditer(ptx))
    names.update(match[1] for match in _ENGINE.finditer(ptx))
    return tuple(sorted(names.items()))


def architecture(schedule: Schedule, gpu: Gpu) -> str:
    """What to compile for: the GPU's own, with the target's features if they are its own.

    Raises ``UsageError`` for a GPU that lacks the target's instructions: those of an older one, or
    of one whose name ends with ``a``, if the schedule is not legal without them.
    """
    target = schedule.target
    if target.rstrip("a") == gpu.arch:
        return target
    older = _number(target) > _number(gpu.arch)
    if not older and not target.endswith("a"):
        return gpu.arch
    legal = _is_legal(replace(schedule, target=gpu.target))
    if legal and not older:
        return gpu.arch
    why = f"the schedule needs {target}, and {gpu.name} is {gpu.arch}"
    known = [other for other in GPUS.values() if _number(other.arch) >= _number(target)]
    own = [other for other in known if other.arch == target.rstrip("a")]
    other = f"--arch {gpu.target}" if legal else f"--gpu {(own or known)[0].name}"
    raise UsageError(f"{why}: use {other}")


def _is_legal(schedule: Schedule) -> bool:
    try:
        compile_schedule(schedule)
    except ScheduleError:
        return False
    return True


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("a"))


def occupancy_of(resources: Resources, gpu: Gpu) -> Occupancy:
    warps = resources.threads // WARP
    most_warps = gpu.threads // WARP
    unit = -(-resources.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    of_registers = REGISTERS // SCHEDULERS // unit * SCHEDULERS // warps
    limits = [("registers", of_registers)]
    if resources.shared:
        taken = -(-(resources.shared + gpu.reserved) // SHARED_UNIT) * SHARED_UNIT
        limits.append(("shared memory", gpu.shared // taken))
    limits += [("threads", most_warps // warps), ("blocks", gpu.blocks)]
    blocks = min(count for _, count in limits)
    return Occupancy(blocks, blocks * warps, most_warps, tuple(limits))
