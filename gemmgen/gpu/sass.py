"""The machine code of a cubin as a list of instructions, and queries on it.

``nvdisasm`` and ``cuobjdump`` are part of the CUDA toolkit and of Triton's package; NVRTC has
neither, so a machine without them gets ``CannotCheck``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from gemmgen.base import caches, temporary
from gemmgen.base.errors import CannotCheck
from gemmgen.base.record import record
from gemmgen.gpu import nvcc
from gemmgen.ir.planes import PRE_PASSES

# HFMA2 is left out: ptxas also uses it to set a register to zero.
ARITHMETIC = ("FFMA", "FFMA2", "HMMA", "HGMMA", "IMMA", "QGMMA", "IGMMA", "DFMA", "DMMA")
_LISTING = "listing"


@record
class SassInstruction:
    """One instruction: ``LDG.E.128.CONSTANT`` with its operands and guard (``@!P0`` or empty).

    ``target`` is the address that a branch or a call goes to.
    """

    address: int
    opcode: str
    operands: str
    guard: str = ""
    target: int | None = None

    def is_a(self, *names: str) -> bool:
        """Whether the opcode is one of ``names``, whatever its modifiers (``LDG``, ``LDG.E``)."""
        return any(self.opcode == name or self.opcode.startswith(name + ".") for name in names)


Code = tuple[SassInstruction, ...]


def disassemble(cubin: bytes, function: str | None = None) -> Code:
    """The instructions of ``function`` in ``cubin``, or of its only kernel, a pre-pass
    apart."""
    found = functions(cubin)
    if function is None:
        pre_passes = {pre_pass.format(kernel=name) for name in found for pre_pass in PRE_PASSES}
        (code,) = (code for name, code in found.items() if name not in pre_passes)
        return code
    return found[function]


def functions(cubin: bytes) -> dict[str, Code]:
    """All functions of ``cubin``, by name."""
    return _functions(cubin, tool())


@lru_cache(maxsize=64)
def _functions(cubin: bytes, command: tuple[str, ...]) -> dict[str, Code]:
    return parse(_text(cubin, command))


def listing(cubin: bytes) -> str:
    """What the tool prints of a cubin."""
    return _text(cubin, tool())


def _text(cubin: bytes, command: tuple[str, ...]) -> str:
    """The listing of a cubin, cached: a disassembly takes half a second."""
    about = Path(command[0]).resolve().stat()
    name = f"sass-{caches.key(cubin, repr((command, about.st_size, about.st_mtime_ns)))}"
    known = caches.read(name)
    if known is not None:
        return known[_LISTING].decode()
    with temporary.folder() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        found = _listing(path, command)
    caches.write(name, {_LISTING: found.encode()})
    return found


def parse(listing: str) -> dict[str, Code]:
    """The functions of a listing of ``nvdisasm -c`` or ``cuobjdump -sass``."""
    functions: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in listing.splitlines():
        header = re.match(r"\s*Function : (\S+)|\.text\.(\S+):", line)
        if header:
            lines = functions.setdefault(header[1] or header[2], [])
        else:
            lines.append(line)
    return {name: _function(lines) for name, lines in functions.items()}


def count(code: Iterable[SassInstruction], *names: str) -> int:
    """The number of instructions of ``code`` that are one of ``names``."""
    return sum(1 for instruction in code if instruction.is_a(*names))


def positions(code: Code, *names: str) -> tuple[int, ...]:
    """The positions in ``code`` of the instructions ``names``, from 0."""
    return tuple(at for at, instruction in enumerate(code) if instruction.is_a(*names))


def reuse_share(code: Iterable[SassInstruction], name: str = "FFMA") -> float:
    """Share of the instructions ``name`` with an operand from the reuse cache; 0 without any."""
    found = [instruction for instruction in code if instruction.is_a(name)]
    return sum(".reuse" in i.operands for i in found) / len(found) if found else 0.0


def overlap(loop: Code) -> float:
    """Share of ``loop``'s arithmetic that is after the global loads of the next tile and before
    their stores to shared memory (of asynchronous copies: before the wait for some): near 1 if
    copies overlap arithmetic, 0 if they don't.

    The body is read cyclically from its first global load, because ptxas may rotate a loop.
    """
    begins, ends = ("LDGSTS", "DEPBAR") if count(loop, "LDGSTS") else ("LDG", "STS")
    loads, total = positions(loop, begins), count(loop, *ARITHMETIC)
    if not loads or not total:
        return 0.0
    hidden, pending, in_flight = 0, 0, False
    for instruction in loop[loads[0] :] + loop[: loads[0]]:
        if instruction.is_a(begins):
            pending, in_flight = 0, True
        elif instruction.is_a(*ARITHMETIC):
            pending += 1
        elif instruction.is_a(ends) and in_flight:
            hidden, in_flight = hidden + pending, False
    return hidden / total


def tool() -> tuple[str, ...]:
    """The command that disassembles a cubin: ``nvdisasm -c`` or ``cuobjdump -sass``.

    ``-ndf`` leaves out an analysis that takes a third of the time and adds comments.
    """
    folders = [*nvcc.folders(), "/usr/local/cuda/bin", *_wheel_folders()]
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin is not None:
        folders.append(str(Path(triton.origin).parent / "backends" / "nvidia" / "bin"))
    search = os.pathsep.join(folders)
    for command in (("nvdisasm", "-c", "-ndf"), ("cuobjdump", "-sass")):
        found = shutil.which(command[0], path=search)
        if found is not None:
            return found, *command[1:]
    raise CannotCheck(
        "neither nvdisasm nor cuobjdump is here, so no machine code can be read: "
        "pip install nvidia-cuda-nvdisasm, or set CUDA_HOME"
    )


def _wheel_folders() -> list[str]:
    """The folders of the package ``nvidia-cuda-nvdisasm``'s program."""
    nvidia = importlib.util.find_spec("nvidia")
    locations = nvidia.submodule_search_locations if nvidia else None
    return [str(path) for folder in locations or () for path in Path(folder).glob("*/bin")]


def _listing(path: Path, command: tuple[str, ...]) -> str:
    done = subprocess.run(
        (*command, str(path)), capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotCheck(
            f"{command[0]} can't read the cubin: {said[0] if said else 'no word why'}"
        )
    return done.stdout


_LABEL = re.compile(r"\s*(\.L_\w+):")
_LINE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+\{?\s*(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
# ptxas also leaves a loop by a call from which nothing returns: @P1 CALL.REL.NOINC `(.L_x_0).
_BRANCHES = ("BRA", "JMP", "CALL")
_TARGET = re.compile(r"`\((\.L_\w+)\)|(0x[0-9a-f]+)\s*$")


def _function(lines: list[str]) -> Code:
    """Instructions of one function, with the labels of branches resolved to addresses."""
    labels: dict[str, int] = {}
    pending: list[str] = []
    found: list[tuple[int, str, str, str]] = []
    for line in lines:
        label = _LABEL.match(line)
        if label:
            pending.append(label[1])
            continue
        match = _LINE.match(line)
        if match:
            address = int(match[1], 16)
            labels.update((name, address) for name in pending)
            pending.clear()
            found.append((address, match[3], match[4], (match[2] or "").strip()))
    return tuple(
        SassInstruction(address, opcode, operands, guard, _target(opcode, operands, labels))
        for address, opcode, operands, guard in found
    )


def _target(opcode: str, operands: str, labels: dict[str, int]) -> int | None:
    if opcode.split(".")[0] not in _BRANCHES:
        return None
    match = _TARGET.search(operands)
    if match is None:
        return None
    return labels.get(match[1]) if match[1] else int(match[2], 16)
