"""nvcc of the CUDA toolkit: the compiler for machines that have no NVRTC package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from gemmgen.base.errors import CannotCheck
from gemmgen.base.shortage import in_english, shortage
from gemmgen.gpu.compiler_output import CompileError, Output

_SECONDS = 600
_NAME = "gemm"


class Nvcc:
    """The ``nvcc`` of PATH, CUDA_HOME or CUDA_PATH; ``OSError`` if there is none.

    It compiles the whole text, the launcher included, which needs a host compiler.
    """

    def __init__(self) -> None:
        self._command = _find()
        version = _run((self._command, "--version"), None).stdout
        release = re.search(r"V(\d+\.\d+\.\d+)", version)
        if release is None:
            raise OSError(f"{self._command} does not say its version")
        self.name = f"nvcc {release[1]}"

    def run(self, *arguments: str, folder: str) -> subprocess.CompletedProcess[str]:
        """Runs nvcc in ``folder``, whatever its status.  Raises ``CannotCheck`` if it does not
        end."""
        return _run((self._command, *arguments), folder)

    def compile(self, text: str, path: str, arch: str, options: tuple[str, ...]) -> Output:
        if path:
            text = f"#line 1 {json.dumps(path)}\n{text}"
        with tempfile.TemporaryDirectory(prefix="gemmgen-") as folder:
            source = Path(folder, f"{_NAME}.cu")
            source.write_text(text, encoding="utf-8")
            # Relative names: the cubin holds the command line.
            command = (self._command, "-cubin", "--keep", f"--gpu-architecture={arch}", *options)
            command += ("-lineinfo",) if path else ()
            done = _run((*command, "-o", f"{_NAME}.out", source.name), folder)
            log = (done.stderr + done.stdout).strip()
            if done.returncode != 0:
                check_machine(log, folder)
                raise CompileError(f"nvcc refuses {path or source.name} ({arch}):", log)
            (ptx,) = Path(folder).glob("*.ptx")
            return Output(Path(folder, f"{_NAME}.out").read_bytes(), ptx.read_text(), log)


def check_machine(log: str, folder: str) -> None:
    """Raises ``CannotCheck`` if nvcc failed with ``log``, in ``folder``, for what this machine
    lacks."""
    lacking = shortage(log, Path(folder))
    if "host compiler" in log and lacking is None:
        lacking = log.splitlines()[0]
    if lacking is not None:
        raise CannotCheck(f"nvcc compiles nothing here: {lacking}")


def folders() -> list[str]:
    """Where programs of the CUDA toolkit are looked for."""
    homes = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    return [os.environ.get("PATH", ""), *(f"{home}/bin" for home in homes if home)]


def _find() -> str:
    found = shutil.which("nvcc", path=os.pathsep.join(folders()))
    if found is None:
        raise OSError("nvcc is not on PATH")
    return found


def _run(command: tuple[str, ...], folder: str | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=_SECONDS,
            check=False,
            env=in_english(),
        )
    except subprocess.TimeoutExpired:
        raise CannotCheck(f"nvcc did not end within {_SECONDS} seconds") from None
