"""CUDA C text -> cubin and PTX through NVRTC, with no GPU and no driver.

NVRTC comes with ``cuda-bindings`` (``pip install gemmgen[nvrtc]``) or with CuPy; whichever is there
is used.  ptxas reports its registers, spills and shared memory in NVRTC's program log.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

from gemmgen.errors import CannotCheck, GemmgenError

INSTALL = "pip install 'gemmgen[nvrtc]'"
OPTIONS = ("--std=c++17", "--ptxas-options=-v")


class CompileError(GemmgenError):
    """NVRTC refused a text, or warned about it; ``log`` is what it said."""

    exit_code = 1

    def __init__(self, message: str, log: str):
        super().__init__(f"{message}\n{log.strip()}")
        self.log = log


@dataclass(frozen=True)
class Compiled:
    """A compiled text and what ptxas said of it.

    ``registers`` are per thread; ``spills`` counts bytes of spill stores and loads; ``shared``
    (static) and ``stack`` are bytes.  Of several kernels in one text each figure is the greatest.
    ``warnings`` is the log without ptxas's report: empty for a text as it should be.
    """

    arch: str
    cubin: bytes
    ptx: str
    registers: int
    spills: int
    shared: int
    stack: int
    log: str
    warnings: str


class Nvrtc(Protocol):
    """What is asked of either binding: its version, and a compilation."""

    def version(self) -> tuple[int, int]: ...

    def compile(self, text: str, path: str, options: tuple[str, ...]) -> tuple[bytes, bytes, str]:
        """Cubin, PTX and log; raises ``CompileError``."""
        ...


def compile_text(text: str, arch: str, *, path: str = "", strict: bool = True) -> Compiled:
    """``text`` compiled for ``arch`` (``sm_90``, ``sm_90a``); cached within the process.

    ``path`` is the file that holds the text: with it the cubin carries line information for
    profilers.  Without it the bytes are the same on every machine.  Raises ``CompileError`` for a
    text that NVRTC refuses (``strict``: or warns about), ``CannotCheck`` where there is no NVRTC.
    """
    compiled = _compile(text, arch, path)
    if strict and not compiled.registers:
        raise CannotCheck("NVRTC gave no report of registers and spills, so they can't be checked")
    if strict and compiled.warnings:
        raise CompileError(f"NVRTC warns about the kernel's text for {arch}:", compiled.warnings)
    return compiled


def version() -> tuple[int, int]:
    """NVRTC's version, (13, 0) say."""
    return _nvrtc().version()


def available() -> str | None:
    """None where a text can be compiled; else one sentence that says why not."""
    try:
        _nvrtc()
    except CannotCheck as missing:
        return str(missing)
    return None


def require_nvrtc() -> None:
    """Raises ``CannotCheck`` where nothing can be compiled."""
    _nvrtc()


@cache
def _compile(text: str, arch: str, path: str) -> Compiled:
    nvrtc = _nvrtc()
    options = [f"--gpu-architecture={arch}", *OPTIONS]
    if path:
        options.append("-lineinfo")
    if nvrtc.version() >= (12, 9):  # NVRTC's own cache gives back the code without the log
        options.append("--no-cache")
    cubin, ptx, log = nvrtc.compile(text, path or "gemm.cu", tuple(options))
    return Compiled(
        arch=arch,
        cubin=cubin,
        ptx=ptx.decode().rstrip("\0"),
        registers=_greatest(log, r"Used (\d+) registers"),
        spills=_greatest(log, r"(\d+) bytes spill stores, (\d+) bytes spill loads"),
        shared=_greatest(log, r"(\d+) bytes smem"),
        stack=_greatest(log, r"(\d+) bytes stack frame"),
        log=log,
        warnings=_warnings(log),
    )


def _greatest(log: str, pattern: str) -> int:
    matches = re.finditer(pattern, log)
    return max((sum(int(group) for group in match.groups()) for match in matches), default=0)


def _warnings(log: str) -> str:
    """``log`` without ptxas's report (``ptxas info    : ...`` and its continuation lines)."""
    report = re.compile(r"ptxas (info\s*:|\s+\.)")
    return "\n".join(line for line in log.splitlines() if not report.match(line)).strip()


@cache
def _nvrtc() -> Nvrtc:
    for binding in (_CudaBindings, _CupyBackend):
        found = _try(binding)
        if found is not None:
            return found
    raise CannotCheck(f"NVRTC is not installed, so nothing can be compiled here: {INSTALL}")


def _try(binding: Callable[[], Nvrtc]) -> Nvrtc | None:
    try:
        found = binding()
        found.version()
    except (ImportError, RuntimeError, OSError, AttributeError):
        return None
    return found


class _Bindings(Protocol):
    """``cuda.bindings.nvrtc``: each call returns a status (0 is success) before its results."""

    def nvrtcVersion(self) -> tuple[int, int, int]: ...
    def nvrtcCreateProgram(
        self, src: bytes, name: bytes, count: int, headers: list[bytes], names: list[bytes]
    ) -> tuple[int, object]: ...
    def nvrtcCompileProgram(self, prog: object, count: int, options: list[bytes]) -> tuple[int]: ...
    def nvrtcDestroyProgram(self, prog: object) -> tuple[int]: ...


class _CudaBindings:
    """NVRTC through the package ``cuda-bindings``."""

    def __init__(self) -> None:
        self._module = importlib.import_module("cuda.bindings.nvrtc")
        self._nvrtc = cast(_Bindings, self._module)

    def version(self) -> tuple[int, int]:
        status, major, minor = self._nvrtc.nvrtcVersion()
        if status != 0:
            raise RuntimeError("nvrtcVersion failed")
        return major, minor

    def compile(self, text: str, path: str, options: tuple[str, ...]) -> tuple[bytes, bytes, str]:
        status, program = self._nvrtc.nvrtcCreateProgram(text.encode(), path.encode(), 0, [], [])
        if status != 0:
            raise CompileError(f"NVRTC could not take in {path} ({status})", "")
        try:
            encoded = [option.encode() for option in options]
            (status,) = self._nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = self._get("ProgramLog", program).decode().rstrip(" \0\n")
            if status != 0:
                raise CompileError(f"NVRTC refuses {path} ({options[0]}):", log or str(status))
            return self._get("CUBIN", program), self._get("PTX", program), log
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _get(self, what: str, program: object) -> bytes:
        """One result: its size by ``nvrtcGet<what>Size``, then the bytes."""
        measure = cast(
            Callable[[object], tuple[int, int]], getattr(self._module, f"nvrtcGet{what}Size")
        )
        fill = cast(Callable[[object, bytes], tuple[int]], getattr(self._module, f"nvrtcGet{what}"))
        status, size = measure(program)
        buffer = b" " * size
        (filled,) = fill(program, buffer)
        if status != 0 or filled != 0:
            raise CompileError(f"NVRTC gave no {what} ({status}, {filled})", "")
        return buffer


class _Backend(Protocol):
    """CuPy's own binding, which its wheels bring."""

    def getVersion(self) -> tuple[int, int]: ...
    def createProgram(
        self, src: str, name: str, headers: tuple[()], include_names: tuple[()]
    ) -> int: ...
    def compileProgram(self, prog: int, options: tuple[str, ...]) -> None: ...
    def getProgramLog(self, prog: int) -> str: ...
    def getCUBIN(self, prog: int) -> bytes: ...
    def getPTX(self, prog: int) -> bytes | str: ...
    def destroyProgram(self, prog: int) -> None: ...


class _CupyBackend:
    """NVRTC through CuPy, where ``cuda-bindings`` is missing."""

    def __init__(self) -> None:
        name = "cupy_backends.cuda.libs.nvrtc"
        self._nvrtc = cast(_Backend, importlib.import_module(name))

    def version(self) -> tuple[int, int]:
        return self._nvrtc.getVersion()

    def compile(self, text: str, path: str, options: tuple[str, ...]) -> tuple[bytes, bytes, str]:
        program = self._nvrtc.createProgram(text, path, (), ())
        try:
            try:
                self._nvrtc.compileProgram(program, options)
            except RuntimeError as failure:
                log = self._nvrtc.getProgramLog(program) or str(failure)
                raise CompileError(f"NVRTC refuses {path} ({options[0]}):", log) from None
            ptx = self._nvrtc.getPTX(program)
            as_bytes = ptx.encode() if isinstance(ptx, str) else ptx
            return self._nvrtc.getCUBIN(program), as_bytes, self._nvrtc.getProgramLog(program)
        finally:
            self._nvrtc.destroyProgram(program)
