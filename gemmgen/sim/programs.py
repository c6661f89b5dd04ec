"""Programs that run a kernel's text: cached, or compiled and linked with the runner."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib import resources
from itertools import chain
from pathlib import Path

from gemmgen.base import caches, temporary
from gemmgen.base.record import record
from gemmgen.base.shortage import cannot_check
from gemmgen.ir.interface import Interface
from gemmgen.sim import toolchain
from gemmgen.sim.alignment import check_alignment
from gemmgen.sim.unit import unit_text

_CHECKS = ("access_checks", "tma_checks", "shadow", "reads", "order", "integer_checks")
_PRODUCTS = {
    "wmma.": ("wmma",),
    "mma.sync": ("mma", "mma_doubles"),
    "wgmma.": ("wgmma", "wgmma_accumulators", "wgmma_operands", "wgmma_products", "wgmma_checks"),
}
"""Models of tensor cores, which take a third of the runner's time to compile, by what the text of a
kernel that needs them has."""
_OTHERS = {*_CHECKS, *chain.from_iterable(_PRODUCTS.values())}
_RUNNER = tuple(
    sorted(
        path.name.removesuffix(".cpp")
        for path in resources.files("gemmgen.sim").iterdir()
        if path.name.endswith(".cpp") and path.name.removesuffix(".cpp") not in _OTHERS
    )
)
_LINKED = ("-no-pie", "-nodefaultlibs", "-lm", "-lc", "-lgcc")
_PROGRAM, _SYMBOLS = "kernel", "symbols"


@record
class HostProgram:
    """An executable file, and readelf's list of a checked one.  ``held`` is the folder that is
    removed with it, if it is in no cache."""

    path: Path
    symbols: str
    held: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        if self.held is not None:
            self.held.cleanup()


def program(
    text: str,
    interface: Interface,
    *,
    checked: bool = False,
    ucontext: bool = False,
    warn: bool = True,
) -> HostProgram:
    """``text`` as a program that answers requests.

    Raises CompileFailure if g++ refuses the text or (``warn``) warns, CannotCheck if there is no
    g++ or no room for its files.
    """
    toolchain.require_gxx()
    if checked:
        check_alignment(text, f"{interface.name}.cu", interface.maps)
    unit = unit_text(text, interface)
    flags = toolchain.kernel_flags(checked=checked, warn=warn)
    name = f"host-{caches.key(identity(ucontext), repr(flags), unit)}"
    found = _kept(name, caches.read(name), caches.folder())
    if found is not None:
        return found
    with cannot_check("g++ can't compile on this machine"):
        directory = temporary.folder()
        path = Path(directory.name, _PROGRAM)
        kernel = toolchain.compile_unit(unit, Path(directory.name), flags)
        products = tuple(each for each in _PRODUCTS if each in text)
        _link(kernel, path, products, checked=checked, ucontext=ucontext)
        symbols = _symbols(path) if checked else ""
        files = {_PROGRAM: path.read_bytes(), _SYMBOLS: symbols.encode()}
    written = caches.write(name, files, executable=_PROGRAM)
    found = _kept(name, files, written and written.parent)
    if found is not None:
        directory.cleanup()
        return found
    return HostProgram(path, symbols, directory)


def _kept(name: str, files: Mapping[str, bytes] | None, cache: Path | None) -> HostProgram | None:
    """The program of a cache entry; None if the cache's file system is mounted noexec."""
    if files is None or cache is None:
        return None
    path = cache / name / _PROGRAM
    return HostProgram(path, files[_SYMBOLS].decode()) if os.access(path, os.X_OK) else None


def _link(
    kernel: Path, path: Path, products: tuple[str, ...], *, checked: bool, ucontext: bool
) -> None:
    runner = _runner_objects(ucontext)
    names = (*_RUNNER, *(_CHECKS if checked else ()))
    objects = [runner / f"{name}.o" for name in names]
    for each in products:
        folder = _runner_objects(ucontext, each)
        parts = (name for name in _PRODUCTS[each] if checked or not name.endswith("_checks"))
        objects += [folder / f"{name}.o" for name in parts]
    toolchain.gxx(str(kernel), *map(str, objects), *_LINKED, "-o", str(path))


def _symbols(path: Path) -> str:
    command = ["readelf", "--syms", "--wide", str(path)]
    return subprocess.run(command, capture_output=True, text=True).stdout


@functools.cache
def _runner_objects(ucontext: bool, product: str = "") -> Path:
    """A folder of this process with the runner's objects, or the models of ``product``, from the
    cache or compiled; ``ucontext`` selects the portable fibers.

    The cache's own files are not linked: they may be evicted while this process runs.
    """
    directory = temporary.folder()
    _held.append(directory)
    parts = _PRODUCTS[product] if product else (*_RUNNER, *_CHECKS)
    which = "".join(filter(str.isalpha, product)) or "runner"
    own, name = Path(directory.name), f"{which}-{caches.key(identity(ucontext), *parts)}"
    kept = caches.read(name)
    if kept is not None:
        for file, data in kept.items():
            (own / file).write_bytes(data)
        return own
    folder = resources.files("gemmgen.sim")
    sources = [str(folder / f"{part}.cpp") for part in parts]
    toolchain.gxx(*_runner_flags(ucontext), "-c", *sources, directory=own)
    caches.write(name, {path.name: path.read_bytes() for path in own.iterdir()})
    return own


_held: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that are kept until the process ends."""


def _runner_flags(ucontext: bool) -> tuple[str, ...]:
    return (*toolchain.runner_flags(), *(["-DGG_UCONTEXT"] if ucontext else []))


@functools.cache
def identity(ucontext: bool = False) -> str:
    """A key of what a program depends on besides the kernel: flags, the runner's sources, g++."""
    found = shutil.which("g++")
    about = Path(found).resolve().stat() if found else None
    compiler = repr((about and (about.st_size, about.st_mtime_ns), _runner_flags(ucontext)))
    sources = sorted(Path(str(resources.files("gemmgen.sim"))).glob("*.[ch]*"))
    parts = (part for source in sources for part in (source.name.encode(), source.read_bytes()))
    return caches.key(compiler, repr(_LINKED), *parts)
