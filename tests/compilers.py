"""Machines without a compiler, or with nvcc alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import compiler, nvrtc, sass

Hide = Callable[[pytest.MonkeyPatch], None]


def hide_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither ``cuda-bindings`` nor CuPy can be imported."""

    def gone() -> NoReturn:
        raise ImportError("hidden")

    monkeypatch.setattr(nvrtc, "CudaBindings", gone)
    monkeypatch.setattr(nvrtc, "CupyBackend", gone)


def hide_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of PATH has an nvcc, and CUDA_HOME names none."""
    folders = os.environ["PATH"].split(os.pathsep)
    left = [folder for folder in folders if not Path(folder, "nvcc").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(left))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def only(monkeypatch: pytest.MonkeyPatch, *hidden: Hide) -> Generator[None]:
    """Compilers are looked for again within the block, and again after it."""
    with monkeypatch.context() as patch:
        for hide in hidden:
            hide(patch)
        compiler._chosen.cache_clear()
        try:
            yield
        finally:
            compiler._chosen.cache_clear()


@contextmanager
def none_at_all(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A machine that can compile nothing."""
    with only(monkeypatch, hide_nvrtc, hide_nvcc):
        yield


def measured_on(target: str) -> str:
    """The architecture of the GPU that examples were measured on, in the form of ``target`` where
    that is exact (sm_90a)."""
    return target if target == "sm_90a" else "sm_90"


def needs_sass() -> None:
    """Skips the test where nothing can be compiled, or no machine code read."""
    needed()
    try:
        sass.tool()
    except CannotCheck as none:
        pytest.skip(str(none))


def needed() -> None:
    """Skips the test where nothing can be compiled."""
    missing = compiler.available()
    if missing is not None:
        pytest.skip(missing)
