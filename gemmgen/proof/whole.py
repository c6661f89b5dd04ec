"""The whole text, its launcher included, compiled as users compile it: by nvcc, where it is here.

NVRTC sees no launcher, and nvcc's own cubins come without one.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from gemmgen.base import caches
from gemmgen.base.errors import CannotCheck
from gemmgen.base.record import record
from gemmgen.gpu import nvcc

OPTIONS = ("-std=c++17", "-Werror", "all-warnings", "-Xcompiler", "-Wall")


@record
class Whole:
    """``complaint`` is what nvcc refuses, or None; ``told`` says what was done, or why nothing."""

    complaint: str | None
    told: str


@cache
def compiled(text: str, arch: str) -> Whole:
    """``text`` as an object file for ``arch``."""
    try:
        by = nvcc.Nvcc()
    except (OSError, CannotCheck):
        return Whole(None, "the launcher was not compiled: nvcc is not here")
    told = f"{by.name} compiles the launcher, too"
    entry = f"whole-{caches.key(by.name, arch, repr(OPTIONS), text)}"
    if caches.read(entry) is not None:
        return Whole(None, told)
    try:
        log = _log(by, text, arch)
    except CannotCheck as unable:
        return Whole(None, f"the launcher was not compiled: {unable}")
    if log is not None:
        return Whole(f"{by.name} refuses the whole text ({arch}):\n{log}", told)
    caches.write(entry, {"compiled": b""})
    return Whole(None, told)


def _log(by: nvcc.Nvcc, text: str, arch: str) -> str | None:
    """What nvcc says where it refuses the text."""
    with tempfile.TemporaryDirectory(prefix="gemmgen-") as folder:
        Path(folder, "kernel.cu").write_text(text, encoding="utf-8")
        done = by.run("-c", f"-arch={arch}", *OPTIONS, "kernel.cu", "-o", "kernel.o", folder=folder)
    log = (done.stderr + done.stdout).strip()
    if done.returncode == 0:
        return None
    for unable in ("host compiler", "Unsupported gpu architecture"):
        if unable in log:
            raise CannotCheck(log.splitlines()[0])
    return log
