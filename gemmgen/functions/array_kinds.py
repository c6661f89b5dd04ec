"""The libraries whose arrays are multiplied: what each one's arrays are, and how they run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View
from gemmgen.gpu.gpus import Gpu
from gemmgen.pipeline import Emitted
from gemmgen.torch.choosing import Order

Array = Any
"""An array of one of the libraries."""


class Kind(Protocol):
    """A library of arrays."""

    name: str

    def has(self, value: object) -> bool:
        """Whether ``value`` is one of its arrays."""
        ...

    def check(self, name: str, value: Array) -> None:
        """Raises ``CallError`` for an array that no kernel takes in its present state."""
        ...

    def view(self, name: str, value: Array) -> View:
        """Its address, shape, strides and type."""
        ...

    def gpu(self, value: Array) -> Gpu | None:
        """The GPU that it is on; None for the CPU."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: str, like: Array) -> Array:
        """A new array on the device of ``like``."""
        ...

    def ordered(self, value: Array, order: Order) -> Array:
        """``value`` with its dimensions permuted; for None a contiguous copy."""
        ...

    def run(
        self, emitted: Emitted, tensors: Mapping[str, Array], numbers: Mapping[str, object]
    ) -> None:
        """Runs the kernel; one of the tensors is its output."""
        ...


class NumPyKind:
    """Arrays in host memory: the emitted text, compiled by g++, multiplies them."""

    name = "NumPy"

    def has(self, value: object) -> bool:
        return isinstance(value, np.ndarray)

    def check(self, name: str, value: Array) -> None:
        array = cast(np.ndarray, value)
        if isinstance(array, np.ma.MaskedArray):
            other = f"{name}.data" if name == "out" else f"{name}.filled(0), or {name}.data"
            raise CallError(f"{name} is a masked array, whose mask would be ignored; pass {other}")
        if not array.dtype.isnative:
            raise CallError(
                f"{name} is {array.dtype}, in another byte order than this machine's: pass "
                f"{name}.astype({name}.dtype.newbyteorder('='))"
            )

    def view(self, name: str, value: Array) -> View:
        return strided(name, value, value.__array_interface__["data"][0], 0)

    def gpu(self, value: Array) -> Gpu | None:
        return None

    def empty(self, shape: tuple[int, ...], dtype: str, like: Array) -> Array:
        kind = like.dtype if like.dtype.name == dtype else np.dtype(dtype)
        return np.empty(shape, kind)

    def ordered(self, value: Array, order: Order) -> Array:
        return np.ascontiguousarray(value) if order is None else value.transpose(order)

    def run(
        self, emitted: Emitted, tensors: Mapping[str, Array], numbers: Mapping[str, object]
    ) -> None:
        from gemmgen.sim.host_kernel import HostKernel

        HostKernel.of(emitted)(
            **{name: np.asarray(value) for name, value in tensors.items()}, **numbers
        )


class CupyKind:
    """Arrays on an NVIDIA GPU."""

    name = "CuPy"

    def has(self, value: object) -> bool:
        cupy = sys.modules.get("cupy")
        return cupy is not None and isinstance(value, cast(Any, cupy).ndarray)

    def check(self, name: str, value: Array) -> None:
        pass

    def view(self, name: str, value: Array) -> View:
        return strided(name, value, value.data.ptr, value.data.device_id)

    def gpu(self, value: Array) -> Gpu | None:
        from gemmgen.gpu import device
        from gemmgen.gpu.gpu_names import gpu_of

        at = value.data.device_id
        return gpu_of(device.name(at), device.capability(at), device.reported(at))

    def empty(self, shape: tuple[int, ...], dtype: str, like: Array) -> Array:
        from gemmgen.gpu.device import cupy

        kind = like.dtype if like.dtype.name == dtype else dtype
        return cupy().ndarray(shape, kind)

    def ordered(self, value: Array, order: Order) -> Array:
        from gemmgen.gpu.device import cupy

        return cupy().ascontiguousarray(value) if order is None else value.transpose(order)

    def run(
        self, emitted: Emitted, tensors: Mapping[str, Array], numbers: Mapping[str, object]
    ) -> None:
        at = next(iter(tensors.values())).data.device_id
        cupy_kernel(emitted, at)(**tensors, **numbers)


@lru_cache(512)
def cupy_kernel(emitted: Emitted, gpu: int) -> Any:
    """The kernel on the GPU of this number, which must be current."""
    from gemmgen.gpu.capturing import loading_allowed
    from gemmgen.gpu.launch import Kernel

    with loading_allowed():
        return Kernel.of(emitted)


class TorchKind:
    """Tensors of PyTorch, for calls that pass ``out``."""

    name = "PyTorch"

    def has(self, value: object) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, cast(Any, torch).Tensor)

    def check(self, name: str, value: Array) -> None:
        from gemmgen.gpu.tensors import TorchArrays
        from gemmgen.torch.pytorch import pytorch

        TorchArrays(pytorch(), value.device.type).check(name, value)

    def view(self, name: str, value: Array) -> View:
        dtype = str(value.dtype).removeprefix("torch.")
        at = value.device.index or 0
        return View(value.data_ptr(), tuple(value.shape), tuple(value.stride()), dtype, at)

    def gpu(self, value: Array) -> Gpu | None:
        from gemmgen.torch.forward import gpu_at

        return gpu_at(value.device)

    def empty(self, shape: tuple[int, ...], dtype: str, like: Array) -> Array:
        from gemmgen.torch.pytorch import pytorch

        torch = pytorch()
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)

    def ordered(self, value: Array, order: Order) -> Array:
        return value.contiguous() if order is None else value.permute(order)

    def run(
        self, emitted: Emitted, tensors: Mapping[str, Array], numbers: Mapping[str, object]
    ) -> None:
        from gemmgen.torch.running import launch

        launch(emitted, tensors, cast(Mapping[str, float], numbers))


NUMPY, CUPY, TORCH = NumPyKind(), CupyKind(), TorchKind()
KINDS: tuple[Kind, ...] = (NUMPY, CUPY, TORCH)


def strided(name: str, array: Array, pointer: int, device: int) -> View:
    """The view of an array whose strides are in bytes."""
    item = array.dtype.itemsize
    if any(stride % item for stride in array.strides):
        raise CallError(f"{name} has strides of {array.strides} bytes, not multiples of {item}")
    strides = tuple(stride // item for stride in array.strides)
    return View(pointer, tuple(array.shape), strides, array.dtype.name, device)


def kind_of(given: Mapping[str, object]) -> Kind:
    """The library of these arrays, by name; ``CallError`` for others, and for several of them."""
    found: tuple[str, Kind] | None = None
    for name, value in given.items():
        kind = next((each for each in KINDS if each.has(value)), None)
        if kind is None:
            raise CallError(_unknown(name, value))
        if found is not None and kind is not found[1]:
            first, other = found
            raise CallError(
                f"{first} is {_placed(other, given[first])} and {name} is {_placed(kind, value)}: "
                f"pass both as arrays of one library, {_converted(other, name, given[first])} say"
            )
        found = found or (name, kind)
    assert found is not None, "a product has operands"
    return found[1]


def check_devices(given: Mapping[str, Array]) -> None:
    """Raises ``CallError`` for arrays of one library on several devices."""
    places = {name: _device(value) for name, value in given.items()}
    (first, place), *others = places.items()
    for name, other in others:
        if other != place:
            raise CallError(
                f"{first} is on {place} and {name} is on {other}: move one to the other's device"
            )


def _device(value: Array) -> str:
    device = getattr(value, "device", None)
    at = getattr(device, "id", None)
    return str(device) if at is None else f"GPU {at}"


def _placed(kind: Kind, value: Array) -> str:
    if kind is TORCH:
        return f"a PyTorch tensor on {value.device}"
    return f"a {kind.name} array"


def _converted(kind: Kind, name: str, like: Array) -> str:
    if kind is TORCH:
        return f'torch.as_tensor({name}, device="{like.device}")'
    return f"cupy.asarray({name})" if kind is CUPY else f"numpy.asarray({name})"


def _unknown(name: str, value: object) -> str:
    what = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    taken = "NumPy arrays, CuPy arrays and PyTorch tensors are taken"
    if isinstance(value, list | tuple | int | float):
        return f"{name} is a {what}; {taken}: pass numpy.asarray({name})"
    if hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        return f"{name} is a {what}; {taken}: pass torch.from_dlpack({name}), or cupy's"
    return f"{name} is a {what}; {taken}"
