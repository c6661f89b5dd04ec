"""Compile the whole text, including its launcher, with nvcc if it is installed.

NVRTC does not compile launchers, and cubins don't contain them.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from gemmgen.base import caches
from gemmgen.base.errors import CannotCheck
from gemmgen.base.record import record
from gemmgen.gpu import nvcc
from gemmgen.ir.target import nvcc_flag

OPTIONS = ("-std=c++17", "-Werror", "all-warnings", "-Xcompiler", "-Wall")


@record
class NvccObject:
    """The result of compiling a whole text.  ``complaint``: nvcc's error, or None; ``done``: what
    was done, or why nothing was."""

    complaint: str | None
    done: str


@cache
def compiled(text: str, arch: str) -> NvccObject:
    """``text`` as an object file for ``arch``."""
    try:
        by = nvcc.Nvcc()
    except (OSError, CannotCheck):
        return NvccObject(None, "the launcher was not compiled: nvcc is not installed")
    done = f"{by.name} compiles the launcher, too"
    entry = f"whole-{caches.key(by.name, arch, repr(OPTIONS), text)}"
    if caches.read(entry) is not None:
        return NvccObject(None, done)
    try:
        log = _log(by, text, arch)
    except CannotCheck as unable:
        return NvccObject(None, f"the launcher was not compiled: {unable}")
    if log is not None:
        return NvccObject(f"{by.name} refuses the whole text ({arch}):\n{log}", done)
    caches.write(entry, {"compiled": b""})
    return NvccObject(None, done)


def _log(by: nvcc.Nvcc, text: str, arch: str) -> str | None:
    """nvcc's log if it refuses the text, else None."""
    with tempfile.TemporaryDirectory(prefix="gemmgen-") as folder:
        Path(folder, "kernel.cu").write_text(text, encoding="utf-8")
        done = by.run("-c", nvcc_flag(arch), *OPTIONS, "kernel.cu", "-o", "kernel.o", folder=folder)
        log = (done.stderr + done.stdout).strip()
        if done.returncode == 0:
            return None
        nvcc.check_machine(log, folder)
    if "Unsupported gpu architecture" in log:
        raise CannotCheck(log.splitlines()[0])
    return log
