"""Whose arrays a kernel is called with: CuPy's, PyTorch's, or anything that lends its memory.

PyTorch is never imported here: a caller who passes its tensors has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, cast

from gemmgen.errors import CallError
from gemmgen.formats import NAMES, STORAGE
from gemmgen.gpu.arguments import View
from gemmgen.gpu.device import Array, Stream, cupy
from gemmgen.ir.dtypes import DType


class Library(Protocol):
    """What the launcher asks of a library of arrays."""

    name: str

    def signature(self, value: object) -> Hashable:
        """All of a tensor but its address: calls of equal signatures have equal geometry."""
        ...

    def address(self, value: object) -> int: ...

    def view(self, value: object) -> View: ...

    def empty(self, shape: tuple[int, ...], dtype: DType, like: object) -> object: ...

    def stream(self, value: object) -> AbstractContextManager[object]:
        """Makes the caller's current stream CuPy's, on which kernels are launched."""
        ...


class CupyArrays:
    name = "CuPy"

    def signature(self, value: object) -> Hashable:
        array = cast(Array, value)
        return array.shape, array.strides, array.dtype, array.data.device_id

    def address(self, value: object) -> int:
        return cast(Array, value).data.ptr

    def view(self, value: object) -> View:
        array = cast(Array, value)
        item = array.dtype.itemsize
        if any(stride % item for stride in array.strides):
            raise CallError(f"has strides of {array.strides} bytes, no multiples of {item}")
        strides = tuple(stride // item for stride in array.strides)
        memory = array.data
        return View(memory.ptr, array.shape, strides, array.dtype.name, memory.device_id)

    def empty(self, shape: tuple[int, ...], dtype: DType, like: object) -> object:
        """Of bf16 the bits, in uint16."""
        return cupy().empty(shape, STORAGE[dtype].name)

    def stream(self, value: object) -> AbstractContextManager[object]:
        return nullcontext()


class _TorchDevice(Protocol):
    type: str
    index: int


class _Tensor(Protocol):
    shape: tuple[int, ...]
    dtype: object
    device: _TorchDevice
    requires_grad: bool

    def stride(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...


class _TorchStream(Protocol):
    cuda_stream: int


class _TorchCuda(Protocol):
    def current_stream(self, device: object) -> _TorchStream: ...


class _Torch(Protocol):
    Tensor: type
    cuda: _TorchCuda

    def empty(self, shape: tuple[int, ...], *, dtype: object, device: object) -> object: ...
    def is_grad_enabled(self) -> bool: ...


class TorchArrays:
    name = "PyTorch"

    def __init__(self, torch: _Torch) -> None:
        self._torch = torch
        self._streams: dict[int, Stream] = {}

    def signature(self, value: object) -> Hashable:
        tensor = cast(_Tensor, value)
        return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.requires_grad

    def address(self, value: object) -> int:
        return cast(_Tensor, value).data_ptr()

    def view(self, value: object) -> View:
        tensor = cast(_Tensor, value)
        if tensor.device.type != "cuda":
            raise CallError(f"is a PyTorch tensor on {tensor.device}; move it with .cuda()")
        if tensor.requires_grad and self._torch.is_grad_enabled():
            raise CallError("requires a gradient, which a kernel has none of; pass .detach()")
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape = tuple(tensor.shape)
        return View(tensor.data_ptr(), shape, tensor.stride(), dtype, tensor.device.index)

    def empty(self, shape: tuple[int, ...], dtype: DType, like: object) -> object:
        there = cast(_Tensor, like).device
        return self._torch.empty(shape, dtype=getattr(self._torch, NAMES[dtype]), device=there)

    def stream(self, value: object) -> AbstractContextManager[object]:
        pointer = self._torch.cuda.current_stream(cast(_Tensor, value).device).cuda_stream
        found = self._streams.get(pointer)
        if found is None:
            found = self._streams[pointer] = _borrowed(pointer)
        return found


@dataclass(frozen=True)
class _Pointer:
    """A stream of another library, as CuPy 14 takes it."""

    value: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.value


def _borrowed(pointer: int) -> Stream:
    """CuPy's view of a stream that another library owns."""
    cuda = cupy().cuda
    adopt_stream = getattr(cuda.Stream, "from_external", None)
    if adopt_stream is None:  # CuPy 13
        return cuda.ExternalStream(pointer)
    return cast(Stream, adopt_stream(_Pointer(pointer)))


_CUPY = CupyArrays()
_TORCH: dict[str, TorchArrays] = {}


def library(value: object) -> Library | None:
    """The library ``value`` belongs to, or None where it's neither of the two known ones."""
    if isinstance(value, cupy().ndarray):
        return _CUPY
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    found = _TORCH.get("torch")
    if found is None:
        found = _TORCH["torch"] = TorchArrays(cast(_Torch, torch))
    return found if isinstance(value, cast(_Torch, torch).Tensor) else None


def adopt(name: str, value: object) -> object:
    """A CuPy view of an array of another library, without a copy; ``CallError`` for host memory."""
    if hasattr(value, "__cuda_array_interface__"):
        return cupy().asarray(value)
    on_device = getattr(value, "__dlpack_device__", None)
    if on_device is not None and on_device()[0] == 2:
        return cupy().from_dlpack(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "__array_interface__") or on_device is not None:
        raise CallError(f"{name} is a {kind} in host memory; move it to the GPU (cupy.asarray)")
    raise CallError(f"{name} is a {kind}; the kernel takes a CuPy array or a PyTorch tensor")
