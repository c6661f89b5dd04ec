"""g++: compiles a kernel's text to the object code of a program that runs it."""

from __future__ import annotations

import functools
import platform
import re
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from gemmgen.base import temporary
from gemmgen.base.errors import CannotCheck
from gemmgen.base.shortage import in_english, shortage
from gemmgen.ir.interface import Interface
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.unit import unit_text

COMPILE_SECONDS = 60
COMPILE_KILOBYTES = 4 * 1024 * 1024

RUNNER_FLAGS = ("-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")

_KERNEL_FLAGS = (
    "-std=c++17",
    "-O1",
    "-ffp-contract=off",
    "-frounding-math",  # else g++ simplifies -fabsf(x) + 0.0f to -fabsf(x): another zero
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-ftrivial-auto-var-init=pattern",
    "-fstack-clash-protection",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-extern-tls-init",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
    "-Wno-psabi",  # a tensor map is passed as GCC since 4.6 does
)

# Each access and each index becomes a callback, and its line is in the debug information.
_CHECKED_FLAGS = (
    "-fsanitize=thread",
    "-fsanitize=bounds-strict,signed-integer-overflow,integer-divide-by-zero,shift",
    "-g1",
    "-fno-var-tracking",  # only lines are needed: a quarter of the time
    "-gdwarf-4",  # binutils find the file that #line names
)

# A kernel's text compiles without these warnings.  -Wdouble-promotion: f32 text computes nothing in
# double.  Excepted: -Wmaybe-uninitialized has false positives, #pragma unroll is CUDA's, and an
# extent of whole tiles needs no guard, so that only the launcher reads that parameter.
_WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Wdouble-promotion",
    "-Werror",
    "-Wno-maybe-uninitialized",
    "-Wno-unused-parameter",
    "-Wno-unknown-pragmas",
)


def kernel_flags(*, checked: bool = False, warn: bool = True) -> tuple[str, ...]:
    """g++'s flags for a kernel's text."""
    checks = _CHECKED_FLAGS if checked else ()
    return (*_KERNEL_FLAGS, *_flags_for("fma"), *checks, *(_WARNINGS if warn else ("-w",)))


def object_code(text: str, interface: Interface) -> bytes:
    """The object code of ``text``, compiled without warnings: equal for texts that are one
    program."""
    unit = unit_text(text, interface)
    with temporary.folder() as directory:
        return compile_unit(unit, Path(directory), kernel_flags(warn=False)).read_bytes()


def compile_unit(unit: str, directory: Path, flags: tuple[str, ...]) -> Path:
    """The object file in ``directory`` of ``unit_text``'s C++.  Its bytes don't depend on the
    folder."""
    source, kernel_object = directory / "kernel.cpp", directory / "kernel.o"
    source.write_text(unit, encoding="utf-8")
    header = f"-I{resources.files('gemmgen.sim')}"
    gxx(*flags, header, "-c", source.name, "-o", kernel_object.name, directory=directory)
    return kernel_object


def runner_flags() -> tuple[str, ...]:
    """g++'s flags for the runner: comparing the times of threads is faster by vectors of 256 bits,
    and products of tensor cores by an instruction in place of a call of fmaf."""
    return (*RUNNER_FLAGS, "-ffp-contract=off", *_flags_for("avx2", "fma"))


@functools.cache
def _flags_for(*extensions: str) -> tuple[str, ...]:
    """``-mfma`` and the like, for what this processor has; without it fmaf is libm's, equal and
    slower."""
    if platform.machine() != "x86_64":
        return ()
    try:
        processor = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ()
    found = re.search(r"^flags\b.*$", processor, re.MULTILINE)
    known = found[0].split() if found else ()
    return tuple(f"-m{extension}" for extension in extensions if extension in known)


def require_gxx() -> None:
    """Raises CannotCheck if there is no g++."""
    if shutil.which("g++") is None:
        raise CannotCheck("Running a kernel on the CPU needs g++, which is not installed.")


def gxx(*arguments: str, directory: Path | None = None) -> None:
    """Runs g++ in ``directory``; raises CompileFailure with its messages if it fails, CannotCheck
    if that is for want of room on this machine."""
    require_gxx()
    limit = f'ulimit -v {COMPILE_KILOBYTES} && exec "$@"'
    command = ["/bin/sh", "-c", limit, "sh", "g++", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS,
            env=in_english(),
        )
    except subprocess.TimeoutExpired:
        raise CompileFailure(f"g++ took longer than {COMPILE_SECONDS} s") from None
    if done.returncode != 0:
        lacking = shortage(done.stderr, directory or Path(tempfile.gettempdir()))
        if lacking is not None:
            raise CannotCheck(f"g++ can't compile on this machine: {lacking}")
        raise CompileFailure(done.stderr.strip() or f"g++ exits with {done.returncode}")
