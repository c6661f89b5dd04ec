"""Compiles CUDA C to cubin and PTX, without a GPU or a driver.

NVRTC is used if a Python package provides it; else ``nvcc`` of the CUDA toolkit;
``GEMMGEN_COMPILER`` names one.  ptxas reports
registers, spills and shared memory in the log of either.  The two may differ in registers and
spills even at one version, so ``Report.compiler`` names the one that was used.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable
from functools import cache
from typing import Protocol

from gemmgen.base import caches
from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.base.installing import install
from gemmgen.base.record import record
from gemmgen.base.source import shown
from gemmgen.gpu.compiler_output import CompileError, Output

INSTALL = f"{install('nvrtc')}, or put nvcc of the CUDA toolkit on PATH"
OPTIONS = ("--std=c++17", "--ptxas-options=-v")
"""Options that both compilers take; part of the key of each stored cubin."""
CHOICE = "GEMMGEN_COMPILER"
_LOG = "log"
_FILES = ("cubin", "ptx", _LOG)
"""Of compiled code in the cache, compressed."""


@record
class Report:
    """What ptxas reports of a compiled text.

    ``registers`` are per thread; ``spill_stores`` and ``spill_loads`` are the bytes that ``ptxas
    -v`` reports; ``shared`` (static) and ``stack`` are bytes.  Of several kernels in one text each
    figure is the greatest.  ``warnings`` is the log without ptxas's report: empty for a correct
    text.  ``compiler`` is a name with a version: ``NVRTC 13.0``, ``nvcc 13.0.88``.
    """

    arch: str
    registers: int
    spill_stores: int
    spill_loads: int
    shared: int
    stack: int
    log: str
    warnings: str
    compiler: str

    @property
    def spills(self) -> int:
        """Bytes of spill stores and of spill loads, added."""
        return self.spill_stores + self.spill_loads


@record
class Compiled(Report):
    """A compiled text: its report and its code."""

    cubin: bytes
    ptx: str


class Compiler(Protocol):
    """NVRTC through one of its bindings, or nvcc."""

    @property
    def name(self) -> str:
        """``NVRTC 13.0``."""
        ...

    def compile(self, text: str, path: str, arch: str, options: tuple[str, ...]) -> Output:
        """``path``: the file of line information, or empty for none.  Raises ``CompileError``."""
        ...


def compile_text(text: str, arch: str, *, path: str = "", strict: bool = True) -> Compiled:
    """``text`` compiled for ``arch`` (``sm_90``, ``sm_90a``), or its code from the cache.

    ``path`` is the file that holds the text: with it the cubin carries line information for
    profilers, and is cached within the process alone.  Without it the bytes depend on the compiler
    alone.  Raises ``CompileError`` for a text that the compiler refuses (``strict``: or warns
    about), ``CannotCheck`` without a compiler.
    """
    by = compiler()
    output = _compile(text, arch, path, by)
    found = _report(output.log, arch, by)
    if strict and not found.registers:
        why = "printed no report of registers and spills, so they cannot be checked"
        raise CannotCheck(f"{found.compiler} {why}")
    if strict and found.warnings:
        message = f"{found.compiler} warns about the kernel's text for {arch}:"
        raise CompileError(message, found.warnings)
    return Compiled(**vars(found), cubin=output.cubin, ptx=output.ptx)


def reported(text: str, arch: str) -> Report:
    """The report of ``compile_text``: from the cache, if the text passed before.

    Raises what ``compile_text`` raises.
    """
    name = f"report-{caches.key(text, arch, identity())}"
    kept = caches.read(name)
    if kept is None:
        kept = {_LOG: compile_text(text, arch).log.encode()}
        caches.write(name, kept)
    return _report(kept[_LOG].decode(), arch, compiler())


def identity() -> str:
    """The compiler with its version and options: what a cubin depends on besides text and
    target."""
    return f"{compiler().name} {' '.join(OPTIONS)}"


def available() -> str | None:
    """None if a text can be compiled; else one sentence that says why not."""
    try:
        compiler()
    except CannotCheck as missing:
        return str(missing)
    return None


def compiler() -> Compiler:
    """NVRTC if it is installed, else nvcc; or the one that ``GEMMGEN_COMPILER`` names (``nvrtc``,
    ``nvcc``): they generate different code for some texts.

    ``CannotCheck`` if it is not here, ``UsageError`` if the name is neither.
    """
    return _chosen(os.environ.get(CHOICE, ""))


@cache
def _chosen(name: str) -> Compiler:
    from gemmgen.gpu import nvcc, nvrtc

    both = {"nvrtc": (nvrtc.CudaBindings, nvrtc.CupyBackend), "nvcc": (nvcc.Nvcc,)}
    if name and name not in both:
        raise UsageError(f"{CHOICE}={shown(name)}: it is nvrtc or nvcc")
    for make in both.get(name, (*both["nvrtc"], *both["nvcc"])):
        found = _try(make)
        if found is not None:
            return found
    missing = f"{name} is" if name else "neither NVRTC nor nvcc is"
    where = "not here" if name else "here"
    raise CannotCheck(f"{missing} {where}, so nothing can be compiled: {INSTALL}")


def _try(make: Callable[[], Compiler]) -> Compiler | None:
    try:
        found = make()
        return found if found.name else None
    except (ImportError, RuntimeError, OSError, AttributeError):
        return None


@cache
def _compile(text: str, arch: str, path: str, by: Compiler) -> Output:
    if path:
        return by.compile(text, path, arch, OPTIONS)
    name = f"code-{caches.key(text, arch, by.name, *OPTIONS)}"
    kept = caches.read(name)
    if kept is not None:
        cubin, ptx, log = (zlib.decompress(kept[file]) for file in _FILES)
        return Output(cubin, ptx.decode(), log.decode())
    found = by.compile(text, path, arch, OPTIONS)
    parts = found.cubin, found.ptx.encode(), found.log.encode()
    caches.write(
        name, {file: zlib.compress(part, 1) for file, part in zip(_FILES, parts, strict=True)}
    )
    return found


def _report(log: str, arch: str, by: Compiler) -> Report:
    stores, loads = _greatest_spills(log)
    return Report(
        arch=arch,
        registers=_greatest(log, r"Used (\d+) registers"),
        spill_stores=stores,
        spill_loads=loads,
        shared=_greatest(log, r"(\d+) bytes smem"),
        stack=_greatest(log, r"(\d+) bytes stack frame"),
        log=log,
        warnings=_warnings(log),
        compiler=by.name,
    )


def _greatest(log: str, pattern: str) -> int:
    return max((int(match[1]) for match in re.finditer(pattern, log)), default=0)


def _greatest_spills(log: str) -> tuple[int, int]:
    """Bytes of spill stores and of spill loads of the kernel that spills most."""
    matches = re.finditer(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    return max(((int(m[1]), int(m[2])) for m in matches), key=sum, default=(0, 0))


_REPORT = re.compile(r"ptxas (info\s*:|\s+\.)|\s+\d+ bytes stack frame, ")
"""Lines of ptxas's report and its continuations: NVRTC begins them ``ptxas         .``, nvcc
indents them."""


def _warnings(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not _REPORT.match(line)).strip()
