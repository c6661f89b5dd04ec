"""CuPy, and one plain sentence if it is missing; what a GPU and its driver say of themselves."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from gemmgen.base.errors import CannotCheck
from gemmgen.base.installing import install
from gemmgen.gpu.gpu_names import Reported, gpu_of
from gemmgen.gpu.gpus import Gpu

_SMS, _CLOCK, _MEMORY_CLOCK, _BUS_WIDTH, _L2_CACHE = 16, 13, 36, 37, 38  # cudaDeviceAttr
INSTALL = f"{install('cuda13')} (cuda12 for CUDA 12)"

Cupy = Any
"""The module ``cupy``, which lint runs without; of its values only arrays are typed."""


class DeviceMemory(Protocol):
    ptr: int
    device_id: int


class DeviceArray(Protocol):
    """A CuPy array."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[np.generic]: ...
    @property
    def data(self) -> DeviceMemory: ...
    @property
    def T(self) -> DeviceArray: ...
    def astype(self, dtype: str) -> DeviceArray: ...
    def view(self, dtype: str) -> DeviceArray: ...
    def copy(self) -> DeviceArray: ...
    def ravel(self) -> DeviceArray: ...
    def reshape(self, *shape: int) -> DeviceArray: ...
    def transpose(self, *axes: int) -> DeviceArray: ...
    def fill(self, value: float) -> None: ...
    def get(self) -> np.ndarray: ...
    def __getitem__(self, key: object) -> DeviceArray: ...
    def __setitem__(self, key: object, value: object) -> None: ...
    def __abs__(self) -> DeviceArray: ...
    def __add__(self, other: DeviceArray | float) -> DeviceArray: ...
    def __sub__(self, other: DeviceArray | float) -> DeviceArray: ...
    def __mul__(self, other: DeviceArray | float) -> DeviceArray: ...
    def __rmul__(self, other: float) -> DeviceArray: ...
    def __matmul__(self, other: DeviceArray) -> DeviceArray: ...
    def __le__(self, other: DeviceArray | float) -> DeviceArray: ...
    def __or__(self, other: DeviceArray) -> DeviceArray: ...
    def __and__(self, other: DeviceArray | int) -> DeviceArray: ...
    def __invert__(self) -> DeviceArray: ...
    def __lshift__(self, count: int) -> DeviceArray: ...
    def __rshift__(self, count: int) -> DeviceArray: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...


@cache
def cupy() -> Cupy:
    """CuPy with a GPU; ``CannotCheck`` says in one sentence what is missing."""
    try:
        found: Cupy = importlib.import_module("cupy")
    except ImportError:
        raise CannotCheck(
            f"CuPy is not installed, so no kernel can be launched: {INSTALL}"
        ) from None
    try:
        count = found.cuda.runtime.getDeviceCount()
    except RuntimeError as failure:
        raise CannotCheck(_no_driver(str(failure))) from None
    if count == 0:
        raise CannotCheck("this machine has no NVIDIA GPU, so no kernel can be launched")
    return found


def missing() -> str | None:
    """None if kernels can be launched; else the sentence that says why not."""
    try:
        cupy()
    except CannotCheck as why:
        return str(why)
    return None


def count() -> int:
    """The GPUs that this process sees; raises ``CannotCheck`` if there is none."""
    return cupy().cuda.runtime.getDeviceCount()


@cache
def capability(device: int) -> tuple[int, int]:
    """The compute capability of ``device``, (9, 0) say."""
    found = cupy().cuda.runtime.getDeviceProperties(device)
    return found["major"], found["minor"]


@cache
def name(device: int) -> str:
    """The GPU's name, "NVIDIA H200" say."""
    found = cupy().cuda.runtime.getDeviceProperties(device)["name"]
    return found.decode() if isinstance(found, bytes) else str(found)


@cache
def reported(device: int) -> Reported:
    """What the driver reports of the GPU."""

    def ask(attribute: int) -> int:
        return cupy().cuda.runtime.deviceGetAttribute(attribute, device)

    memory = 2e3 * ask(_MEMORY_CLOCK) * ask(_BUS_WIDTH) / 8
    return Reported(ask(_SMS), ask(_CLOCK) * 1e3, memory or None, ask(_L2_CACHE))


@cache
def figures(device: int) -> Gpu:
    """The GPU's figures: its row of the known ones, with the driver's name, clock and bandwidth."""
    own = reported(device)
    found = gpu_of(name(device), capability(device), own)
    return replace(
        found,
        name=name(device),
        clock=own.clock or found.clock,
        memory=own.memory or found.memory,
    )


@cache
def multiprocessors(device: int) -> int:
    """How many ``device`` has."""
    return cupy().cuda.runtime.deviceGetAttribute(_SMS, device)


@cache
def shared_limit(device: int) -> int:
    """The most bytes of shared memory that a block may have."""
    return cupy().cuda.runtime.getDeviceProperties(device)["sharedMemPerBlockOptin"]


def arch_for(target: str, major: int, minor: int) -> str:
    """The architecture to compile a kernel of ``target`` for, on a GPU of capability
    ``major.minor``.

    ``sm_80`` runs on all newer GPUs; ``sm_90a`` on exactly 9.0.
    """
    digits = target.removeprefix("sm_")
    exact = not digits.isdigit()
    wanted = int(digits.rstrip("af"))
    here = 10 * major + minor
    if (exact and wanted != here) or wanted > here:
        only = "only" if exact else "or newer"
        raise CannotCheck(
            f"the kernel needs a GPU of sm_{wanted} {only}, and this one is sm_{here}"
        )
    return target if exact else f"sm_{here}"


def _no_driver(said: str) -> str:
    if "InsufficientDriver" in said:
        return (
            "the NVIDIA driver is missing or older than CuPy's CUDA, so no kernel can be launched"
        )
    if "NoDevice" in said:
        return "this machine has no NVIDIA GPU, so no kernel can be launched"
    return f"CUDA can't be used here ({said})"
