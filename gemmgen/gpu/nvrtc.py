"""NVRTC, CUDA's compiler as a library, through the Python packages that provide it.

They are ``cuda-bindings`` (the extra ``nvrtc``) and CuPy.
"""

from __future__ import annotations

import importlib
from typing import Any

from gemmgen.gpu.compiler_output import CompileError, Output

NAMELESS = "gemm.cu"


def _options(version: tuple[int, int], arch: str, path: str, more: tuple[str, ...]) -> list[str]:
    options = [f"--gpu-architecture={arch}", *more]
    if path:
        options.append("-lineinfo")
    if version >= (12, 9):  # NVRTC's own cache returns the code without the log
        options.append("--no-cache")
    return options


def _decoded(ptx: bytes | str) -> str:
    return (ptx if isinstance(ptx, str) else ptx.decode()).rstrip("\0")


class CudaBindings:
    """NVRTC through the package ``cuda-bindings``: each call returns a status (0 is success) before
    its results."""

    def __init__(self) -> None:
        self._nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
        status, major, minor = self._nvrtc.nvrtcVersion()
        if status != 0:
            raise RuntimeError("nvrtcVersion failed")
        self._version = (major, minor)
        self.name = f"NVRTC {major}.{minor}"

    def compile(self, text: str, path: str, arch: str, options: tuple[str, ...]) -> Output:
        name = path or NAMELESS
        status, program = self._nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], [])
        if status != 0:
            raise CompileError(f"NVRTC could not take in {name} ({status})", "")
        try:
            encoded = [o.encode() for o in _options(self._version, arch, path, options)]
            (status,) = self._nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = self._get("ProgramLog", program).decode().rstrip(" \0\n")
            if status != 0:
                raise CompileError(f"NVRTC refuses {name} ({arch}):", log or str(status))
            cubin, ptx = self._get("CUBIN", program), self._get("PTX", program)
            return Output(cubin, _decoded(ptx), log)
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _get(self, what: str, program: object) -> bytes:
        """One result: its size by ``nvrtcGet<what>Size``, then the bytes."""
        status, size = getattr(self._nvrtc, f"nvrtcGet{what}Size")(program)
        buffer = b" " * size
        (filled,) = getattr(self._nvrtc, f"nvrtcGet{what}")(program, buffer)
        if status != 0 or filled != 0:
            raise CompileError(f"NVRTC gave no {what} ({status}, {filled})", "")
        return buffer


class CupyBackend:
    """NVRTC through the binding in CuPy's wheels, if ``cuda-bindings`` is missing."""

    def __init__(self) -> None:
        self._nvrtc: Any = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
        self._version = self._nvrtc.getVersion()
        self.name = "NVRTC {}.{}".format(*self._version)

    def compile(self, text: str, path: str, arch: str, options: tuple[str, ...]) -> Output:
        name = path or NAMELESS
        program = self._nvrtc.createProgram(text, name, (), ())
        try:
            try:
                chosen = tuple(_options(self._version, arch, path, options))
                self._nvrtc.compileProgram(program, chosen)
            except RuntimeError as failure:
                log = self._nvrtc.getProgramLog(program) or str(failure)
                raise CompileError(f"NVRTC refuses {name} ({arch}):", log) from None
            ptx = _decoded(self._nvrtc.getPTX(program))
            return Output(self._nvrtc.getCUBIN(program), ptx, self._nvrtc.getProgramLog(program))
        finally:
            self._nvrtc.destroyProgram(program)
