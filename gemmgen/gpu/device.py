"""CuPy, typed: the part of it that gemmgen uses, and one plain sentence if it is missing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from types import TracebackType
from typing import Protocol, cast

import numpy as np

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu.gpus import GPUS, Gpu

_SMS, _CLOCK, _MEMORY_CLOCK, _BUS_WIDTH = 16, 13, 36, 37  # cudaDeviceAttr
_THREADS, _SHARED, _BLOCKS, _RESERVED = 39, 81, 106, 111
_LANES = {(7, 5): 64, (8, 0): 64}  # float32 lanes of a multiprocessor; 128 on all later ones
INSTALL = "pip install 'gemmgen[cuda13]' (or 'gemmgen[cuda12]')"


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


class Stream(AbstractContextManager["Stream"], Protocol):
    ptr: int

    def synchronize(self) -> None: ...
    def begin_capture(self) -> None: ...
    def end_capture(self) -> Graph: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool | None: ...


class Graph(Protocol):
    def launch(self, stream: Stream | None = None) -> None: ...


class Event(Protocol):
    def record(self, stream: Stream | None = None) -> None: ...
    def synchronize(self) -> None: ...


class LoadedFunction(Protocol):
    """A function of a loaded module; ``ptr`` is the driver's handle."""

    @property
    def ptr(self) -> int: ...


class Function(Protocol):
    """A ``RawKernel``."""

    max_dynamic_shared_size_bytes: int

    @property
    def kernel(self) -> LoadedFunction: ...


class Module(Protocol):
    def get_function(self, name: str) -> Function: ...


class Runtime(Protocol):
    def getDevice(self) -> int: ...
    def getDeviceCount(self) -> int: ...
    def deviceGetAttribute(self, attribute: int, device: int) -> int: ...
    def getDeviceProperties(self, device: int) -> dict[str, object]: ...
    def deviceSynchronize(self) -> None: ...
    def setDevice(self, device: int) -> None: ...
    def streamIsCapturing(self, stream: int) -> bool: ...
    def mallocAsync(self, size: int, stream: int) -> int: ...
    def memsetAsync(self, address: int, value: int, size: int, stream: int) -> None: ...
    def freeAsync(self, address: int, stream: int) -> None: ...


class Driver(Protocol):
    launchKernel: Callable[..., None]


class DeviceModule(Protocol):
    def get_cublas_handle(self) -> int: ...


class Cuda(Protocol):
    runtime: Runtime
    driver: Driver
    device: DeviceModule
    Event: Callable[[], Event]
    Memory: Callable[[int], object]
    MemoryPointer: Callable[[object, int], object]

    def Stream(self, *, non_blocking: bool = False) -> Stream: ...
    def get_current_stream(self) -> Stream: ...
    def get_elapsed_time(self, start: Event, end: Event) -> float: ...


class Random(Protocol):
    def default_rng(self, seed: int) -> object: ...


class StrideTricks(Protocol):
    def as_strided(
        self, array: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> DeviceArray: ...


class Lib(Protocol):
    stride_tricks: StrideTricks


class Cupy(Protocol):
    cuda: Cuda
    lib: Lib
    random: Random
    ndarray: type

    def RawModule(self, *, path: str) -> Module: ...
    def empty(self, shape: tuple[int, ...], dtype: str) -> DeviceArray: ...
    def full(self, shape: tuple[int, ...], value: float, dtype: str) -> DeviceArray: ...
    def asarray(self, value: object) -> DeviceArray: ...
    def ascontiguousarray(self, value: DeviceArray) -> DeviceArray: ...
    def from_dlpack(self, value: object) -> DeviceArray: ...
    def isnan(self, value: DeviceArray) -> DeviceArray: ...
    def equal(self, one: DeviceArray, other: DeviceArray | float) -> DeviceArray: ...
    def where(
        self, condition: DeviceArray, one: DeviceArray | float, other: DeviceArray | float
    ) -> DeviceArray: ...
    def zeros(self, shape: tuple[int, ...], dtype: str) -> DeviceArray: ...
    def broadcast_to(self, array: DeviceArray, shape: tuple[int, ...]) -> DeviceArray: ...
    def arange(self, stop: int) -> DeviceArray: ...
    def argmax(self, value: DeviceArray) -> DeviceArray: ...
    def count_nonzero(self, value: DeviceArray) -> DeviceArray: ...
    def max(self, value: DeviceArray) -> DeviceArray: ...


@cache
def cupy() -> Cupy:
    """CuPy with a GPU; ``CannotCheck`` says in one sentence what is missing."""
    try:
        found = cast(Cupy, importlib.import_module("cupy"))
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


@cache
def capability(device: int) -> tuple[int, int]:
    """The compute capability of ``device``, (9, 0) say."""
    found = cupy().cuda.runtime.getDeviceProperties(device)
    return cast(int, found["major"]), cast(int, found["minor"])


@cache
def name(device: int) -> str:
    """The GPU's name, "NVIDIA H200" say."""
    found = cupy().cuda.runtime.getDeviceProperties(device)["name"]
    return found.decode() if isinstance(found, bytes) else str(found)


@cache
def figures(device: int) -> Gpu:
    """The GPU's figures from its driver; the L2 cache's bandwidth if the GPU is a known one."""

    def ask(attribute: int) -> int:
        return cupy().cuda.runtime.deviceGetAttribute(attribute, device)

    known = next((gpu for key, gpu in GPUS.items() if key in name(device).split()), None)
    return Gpu(
        name=name(device),
        arch="sm_{}{}".format(*capability(device)),
        sms=ask(_SMS),
        clock=ask(_CLOCK) * 1e3,
        lanes=_LANES.get(capability(device), 128),
        shared=ask(_SHARED),
        threads=ask(_THREADS),
        blocks=ask(_BLOCKS),
        memory=2e3 * ask(_MEMORY_CLOCK) * ask(_BUS_WIDTH) / 8,
        l2=known.l2 if known else None,
        reserved=ask(_RESERVED),
    )


@cache
def shared_limit(device: int) -> int:
    """The most bytes of shared memory that a block may have."""
    found = cupy().cuda.runtime.getDeviceProperties(device)
    return cast(int, found["sharedMemPerBlockOptin"])


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
