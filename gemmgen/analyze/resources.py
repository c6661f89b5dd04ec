"""What a block takes of an SM, how many blocks fit, and how often the GPU is filled.

The rules are those of NVIDIA's occupancy calculator: registers are dealt to warps in units of 256,
within each of an SM's four parts; every block takes 1 KiB of shared memory for the system (from
sm_80 on).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from gemmgen.analyze.gpus import REGISTERS, SCHEDULERS, Gpu
from gemmgen.analyze.loop import LoopCode, loop_code
from gemmgen.errors import CannotCheck, UsageError
from gemmgen.gpu.compiler import compile_text
from gemmgen.pipeline import Emitted
from gemmgen.target import WARP

REGISTER_UNIT = 256
SHARED_UNIT = 128


_ACCESS = re.compile(r"^\s*(?:@\S+ )?((?:ld|st)\.(?:global|shared))\S*?(\.v[24])?\.[bfu]\d+", re.M)
_COPY = re.compile(r"^\s*cp\.async\.c[ag]\.shared\.global \[\S+\], \[\S+\], (\d+)", re.M)
_OF_BYTES = {"4": "", "8": ".v2", "16": ".v4"}


@dataclass(frozen=True)
class Resources:
    """Per block: threads, bytes of shared memory.  Per thread: registers, bytes of spills; None
    where ``unknown`` says why they are not known."""

    threads: int
    shared: int
    registers: int | None
    spills: int | None
    unknown: str = ""
    instructions: tuple[tuple[str, int], ...] = ()
    """Memory instructions in the PTX, by name and width in elements: whether the compiler joined
    neighbouring accesses shows here."""
    loop: LoopCode | None = None
    unread: str = ""
    """Why there is no ``loop``; empty where there is one."""


@dataclass(frozen=True)
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
        """Warps of the most that an SM can hold."""
        return self.warps / self.most_warps


@dataclass(frozen=True)
class Waves:
    """How often ``per_wave`` blocks, all that the GPU holds at once, go into the grid's
    ``blocks``."""

    blocks: int
    per_wave: int

    @property
    def count(self) -> int:
        return -(-self.blocks // self.per_wave)

    @property
    def last_fill(self) -> float:
        """The share of the last wave's places that have a block."""
        return (self.blocks - (self.count - 1) * self.per_wave) / self.per_wave

    @property
    def efficiency(self) -> float:
        """The share of all waves' places that have a block."""
        return self.blocks / (self.count * self.per_wave)


def resources_of(emitted: Emitted, gpu: Gpu) -> Resources:
    """Registers and spills are asked of NVRTC, compiling for ``gpu``."""
    interface = emitted.interface
    threads = interface.block[0] * interface.block[1]
    shared = interface.static_shared + interface.dynamic_shared
    arch = architecture(emitted.target, gpu)
    try:
        compiled = compile_text(emitted.text, arch)
    except CannotCheck as missing:
        why = str(missing)
        return Resources(threads, shared, None, None, f"not known here: {why}", unread=why)
    return Resources(
        threads,
        shared,
        compiled.registers,
        compiled.spills,
        "",
        _instructions(compiled.ptx),
        *_loop(compiled.cubin),
    )


def _loop(cubin: bytes) -> tuple[LoopCode | None, str]:
    """The main loop, and why there is none."""
    try:
        found = loop_code(cubin)
    except CannotCheck as missing:
        return None, str(missing)
    return found, "" if found else "the compiled code has no loop that computes"


def _instructions(ptx: str) -> tuple[tuple[str, int], ...]:
    """``ld.shared.v4``, ``cp.async.v4``: how often each stands in the text."""
    names = Counter(match[1] + (match[2] or "") for match in _ACCESS.finditer(ptx))
    names.update(f"cp.async{_OF_BYTES[match[1]]}" for match in _COPY.finditer(ptx))
    return tuple(sorted(names.items()))


def architecture(target: str, gpu: Gpu) -> str:
    """What to compile for: the GPU's own, with the target's features where they are its own."""
    if target.rstrip("a") == gpu.arch:
        return target
    if _number(target) > _number(gpu.arch):
        why = f"the schedule needs {target}, and {gpu.name} is {gpu.arch}"
        raise UsageError(f"{why}: --arch {gpu.arch} asks for less")
    return gpu.arch


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("a"))


def occupancy_of(resources: Resources, gpu: Gpu) -> Occupancy:
    """Without registers (``Resources.unknown``) they do not limit."""
    warps = resources.threads // WARP
    most_warps = gpu.threads // WARP
    limits: list[tuple[str, int]] = []
    if resources.registers is not None:
        unit = -(-resources.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        limits.append(("registers", REGISTERS // SCHEDULERS // unit * SCHEDULERS // warps))
    if resources.shared:
        taken = -(-(resources.shared + gpu.reserved) // SHARED_UNIT) * SHARED_UNIT
        limits.append(("shared memory", gpu.shared // taken))
    limits += [("threads", most_warps // warps), ("blocks", gpu.blocks)]
    blocks = min(count for _, count in limits)
    return Occupancy(blocks, blocks * warps, most_warps, tuple(limits))


def waves_of(blocks: int, occupancy: Occupancy, gpu: Gpu) -> Waves:
    return Waves(blocks, max(1, occupancy.blocks) * gpu.sms)
