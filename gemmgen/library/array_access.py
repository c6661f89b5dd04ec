"""Arrays of PyTorch, CuPy, JAX and others as pointers, extents and strides; streams; the library.

``gemmgen library`` copies this file into the package of each library, as it is.  It imports no
array library: PyTorch and CuPy are used if the caller has imported them.  Tensors of PyTorch take
a path of their own, since their attributes are faster than an exchange by DLPack.

Over 300 lines: a package has one file that is the same in all.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HOST_DEVICES = (1, 3)
"""DLPack's numbers of memory of the host: pageable, pinned."""
GPU_DEVICES = (2, 13)
"""DLPack's numbers of CUDA devices: their own memory, managed memory."""
LEGACY_STREAM = 1
"""The legacy default stream, as DLPack and the CUDA array interface number streams."""
TYPES: dict[str, tuple[tuple[int, int], str]] = {
    "float64": ((2, 64), "f8"),
    "float32": ((2, 32), "f4"),
    "float16": ((2, 16), "f2"),
    "bfloat16": ((4, 16), "V2"),
    "float8_e4m3fn": ((10, 8), "V1"),
    "float8_e5m2": ((12, 8), "V1"),
    "int32": ((0, 32), "i4"),
    "int8": ((0, 8), "i1"),
}
"""Element types: DLPack's code and bits, and NumPy's kind and bytes."""
BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""What holds the bits of types that a library lacks (CuPy has no bfloat16)."""


class Library:
    """The shared library in ``folder``."""

    def __init__(self, folder: Path, name: str) -> None:
        self._name = name
        self._loaded = ctypes.CDLL(str(folder / f"lib{name}_python.so"))
        self.error_text = self._function("error_text", ctypes.c_char_p, ctypes.c_int)
        self.device_of_pointer = self._function("device_of_pointer", ctypes.c_int, ctypes.c_void_p)
        self.order_streams = self._function(
            "order_streams", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
        )

    def product(self, name: str) -> Callable[[bytes], int]:
        """The function of a product, which takes its arguments as one packed ``struct``."""
        return self._function(f"{name}_packed", ctypes.c_int, ctypes.c_char_p)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        found = self._loaded[f"{self._name}_{name}"]
        found.argtypes, found.restype = arguments, result
        return found


class ArrayParameter:
    """An array that a product takes.

    ``dtype``: its name in PyTorch; ``letters``: its indices, in storage order; ``written``: the
    result.
    """

    def __init__(
        self,
        library: Library,
        product: str,
        name: str,
        dtype: str,
        letters: str,
        *,
        written: bool = False,
    ) -> None:
        self.library, self.product, self.name, self.dtype = library, product, name, dtype
        self.letters = letters.split()
        self.ndim = len(self.letters)
        self.written = written
        self.torch_dtype: Any = None  # set when a tensor of PyTorch is read first

    def type_error(self, what: str) -> TypeError:
        return TypeError(f"{self.product}: {self.name} {what}")

    def value_error(self, what: str) -> ValueError:
        return ValueError(f"{self.product}: {self.name} {what}")

    def failure(self, error: int) -> RuntimeError:
        """The error of a call that CUDA refused."""
        text: bytes = self.library.error_text(error)
        return RuntimeError(f"{self.product}: CUDA error {error}: {text.decode()}")

    def misfit(self, shape: tuple[int, ...], /, **others: tuple[int, ...]) -> ValueError:
        """The error of extents that differ from those of the ``others``."""
        known = ", ".join(f"{name} is {_sizes(other)}" for name, other in others.items())
        letters = ", ".join(self.letters)
        return self.value_error(f"[{letters}] is {_sizes(shape)}, which does not fit: {known}")


def device_of(array: Any, parameter: ArrayParameter, stream: Any) -> TorchDevice | ExchangeDevice:
    """What reads the arrays of a call, by its first array.  ``stream``: that of the call; None: the
    current one of the array's library."""
    kind: type[Any] = array.__class__
    find = _finders.get(kind)
    if find is None:
        torch = sys.modules.get("torch")
        is_tensor = torch is not None and isinstance(array, torch.Tensor)
        find = _finders[kind] = _device_of_tensor if is_tensor else _device_of_any
    return find(array, parameter, stream)


_finders: dict[type[Any], Callable[[Any, ArrayParameter, Any], Any]] = {}


class TorchDevice:
    """Reads tensors of PyTorch on one GPU, whose current stream of PyTorch calls are launched
    on."""

    def __init__(self, index: int) -> None:
        self.torch: Any = sys.modules["torch"]
        self.index = index
        self.device = self.torch.device("cuda", index)
        self._empty = self.torch.empty
        raw: Any = getattr(self.torch._C, "_cuda_getCurrentRawStream", None)
        self._stream: Callable[[int], int] = raw or self._current

    def stream(self) -> int:
        """The handle of the current stream."""
        return self._stream(self.index)

    def _current(self, index: int) -> int:
        """By PyTorch's own API, which takes a microsecond longer."""
        return self.torch.cuda.current_stream(index).cuda_stream

    def read(self, tensor: Any, parameter: ArrayParameter) -> tuple[int, ...]:
        """The pointer, the extents, and the strides (in elements) but for the last one, which must
        be 1.  Raises ``TypeError`` or ``ValueError`` for a tensor that the product refuses."""
        try:
            if tensor.dtype is not parameter.torch_dtype:
                self._check_dtype(tensor, parameter)
            if tensor.get_device() != self.index:
                raise self._elsewhere(tensor, parameter)
            shape, strides = tensor.shape, tensor.stride()
        except AttributeError:
            raise parameter.type_error(f"is {_type_name(tensor)}, not a tensor") from None
        if len(shape) == parameter.ndim:  # matrices and vectors without a call more
            if parameter.ndim == 2 and strides[1] == 1:
                rows, columns = shape
                if strides[0] >= columns:
                    return tensor.data_ptr(), rows, columns, strides[0]
            elif parameter.ndim == 1 and strides[0] == 1:
                return tensor.data_ptr(), shape[0]
        return (tensor.data_ptr(), *_extents_and_strides(parameter, shape, strides))

    def empty(self, shape: tuple[int, ...], parameter: ArrayParameter) -> tuple[Any, ...]:
        """A new tensor, its pointer, and its strides but for the last one."""
        if parameter.torch_dtype is None:
            parameter.torch_dtype = self._dtype(parameter)
        made = self._empty(shape, dtype=parameter.torch_dtype, device=self.device)
        steps = shape[1:] if len(shape) == 2 and shape[1] else _packed(shape)
        return made, made.data_ptr(), *steps

    def _dtype(self, parameter: ArrayParameter) -> Any:
        found = getattr(self.torch, parameter.dtype, None)
        if found is None:
            raise parameter.type_error(f"is {parameter.dtype}, which this PyTorch has not")
        return found

    def _check_dtype(self, tensor: Any, parameter: ArrayParameter) -> None:
        if not isinstance(tensor, self.torch.Tensor):
            raise parameter.type_error(f"is {_type_name(tensor)}, not a tensor of PyTorch")
        parameter.torch_dtype = self._dtype(parameter)
        if tensor.dtype is not parameter.torch_dtype:
            found = str(tensor.dtype).removeprefix("torch.")
            raise parameter.type_error(f"is {found}; it must be {parameter.dtype}")

    def _elsewhere(self, tensor: Any, parameter: ArrayParameter) -> ValueError:
        return parameter.value_error(f"is on {tensor.device}, another array on cuda:{self.index}")


_torch_devices: dict[int, TorchDevice] = {}


def _device_of_tensor(tensor: Any, parameter: ArrayParameter, stream: Any) -> TorchDevice:
    if stream is not None:
        raise TypeError(
            f"{parameter.product}: tensors of PyTorch take its current stream; leave stream out, "
            "and call it under torch.cuda.stream(...)"
        )
    index = tensor.get_device()
    found = _torch_devices.get(index)
    if found is None:
        if tensor.device.type != "cuda":
            raise parameter.value_error(f"is on {tensor.device}; move it to a GPU: .cuda()")
        found = _torch_devices[index] = TorchDevice(index)
    return found


class ExchangeDevice:
    """Reads arrays by DLPack or the CUDA array interface, for one call."""

    def __init__(self, first: Any, parameter: ArrayParameter, stream: Any) -> None:
        self.index = -1
        """The GPU; -1 until an array that has elements says it."""
        self._cupy: Any = sys.modules.get("cupy") if _is_of(first, "cupy") else None
        self._handle = self._chosen(first, stream)
        self._kept: list[Any] = []

    def stream(self) -> int:
        """The handle of the stream of the call."""
        return self._handle

    def _chosen(self, first: Any, stream: Any) -> int:
        if stream is not None:
            return _handle_of(stream)
        if self._cupy is not None:
            return int(self._cupy.cuda.get_current_stream().ptr)
        if hasattr(first, "__dlpack__"):
            return LEGACY_STREAM
        described: Any = getattr(first, "__cuda_array_interface__", None) or {}
        return described.get("stream") or LEGACY_STREAM

    def read(self, array: Any, parameter: ArrayParameter) -> tuple[int, ...]:
        """As ``TorchDevice.read``."""
        if parameter.written and _is_of(array, "jax"):
            raise parameter.type_error(
                "is an array of JAX, which is immutable; pass one of CuPy or PyTorch, and give "
                "it to jax.dlpack.from_dlpack after the call"
            )
        if hasattr(array, "__dlpack__"):
            pointer, device, shape, strides = self._by_dlpack(array, parameter)
        elif hasattr(array, "__cuda_array_interface__"):
            pointer, device, shape, strides = self._by_interface(array, parameter)
        elif hasattr(array, "__array_interface__"):
            raise _on_host(parameter)
        else:
            raise parameter.type_error(
                f"is {_type_name(array)}, which has neither __dlpack__ nor __cuda_array_interface__"
            )
        if device not in (-1, self.index) and self.index != -1:
            raise parameter.value_error(f"is on GPU {device}, another array on GPU {self.index}")
        self.index = max(self.index, device)
        return (pointer, *_extents_and_strides(parameter, shape, strides))

    def empty(self, shape: tuple[int, ...], parameter: ArrayParameter) -> tuple[Any, ...]:
        """A new array of CuPy, its pointer, and its strides but for the last one."""
        if self._cupy is None:
            raise TypeError(
                f"{parameter.product}: out is missing; without it only arrays of PyTorch and CuPy "
                "get a new array"
            )
        with self._cupy.cuda.Device(self.index if self.index >= 0 else None):
            made = self._cupy.empty(shape, BITS.get(parameter.dtype, parameter.dtype))
        return made, int(made.data.ptr), *_packed(shape)

    def _by_dlpack(self, array: Any, parameter: ArrayParameter) -> _Found:
        kind, device = array.__dlpack_device__()
        if kind in HOST_DEVICES:
            raise _on_host(parameter)
        if kind not in GPU_DEVICES:
            raise parameter.value_error(f"is on a device of DLPack's type {int(kind)}, not CUDA's")
        capsule = array.__dlpack__(stream=self._handle or LEGACY_STREAM)
        self._kept.append(capsule)
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        code, bits, lanes = tensor.code, tensor.bits, tensor.lanes
        accepted = [TYPES[parameter.dtype][0]]
        if parameter.dtype in BITS:
            accepted.append((1, TYPES[parameter.dtype][0][1]))
        if lanes != 1 or (code, bits) not in accepted:
            names = {known: name for name, (known, _) in TYPES.items()}
            found = names.get((code, bits), f"DLPack's type {code} of {bits} bits")
            raise parameter.type_error(f"is {found}; it must be {parameter.dtype}")
        shape = tuple(tensor.shape[at] for at in range(tensor.ndim))
        strides = tuple(tensor.strides[at] for at in range(tensor.ndim)) if tensor.strides else None
        return (tensor.data or 0) + tensor.byte_offset, int(device), shape, strides

    def _by_interface(self, array: Any, parameter: ArrayParameter) -> _Found:
        described: dict[str, Any] = array.__cuda_array_interface__
        pointer, read_only = described["data"]
        if parameter.written and read_only:
            raise parameter.value_error("is read-only")
        if described.get("mask") is not None:
            raise parameter.value_error("has a mask, which is not supported")
        known = TYPES[parameter.dtype]
        size = known[0][1] // 8
        accepted = (known[1], *((f"u{size}",) if parameter.dtype in BITS else ()))
        order, kind = described["typestr"][0], described["typestr"][1:]
        if order == ">" or kind not in accepted:
            raise parameter.type_error(
                f"has the type {described['typestr']}; it must be {parameter.dtype} "
                f"({' or '.join(accepted)})"
            )
        steps = described.get("strides")
        if steps is not None and any(step % size for step in steps):
            raise parameter.value_error(f"has strides of {steps} bytes, no multiples of {size}")
        device = parameter.library.device_of_pointer(pointer) if pointer else -1
        if pointer and device < 0:
            raise _on_host(parameter)
        written_on = described.get("stream")
        if written_on and written_on != (self._handle or LEGACY_STREAM):
            error = parameter.library.order_streams(written_on, self._handle)
            if error:
                raise parameter.failure(error)
        strides = None if steps is None else tuple(step // size for step in steps)
        return pointer, device, tuple(described["shape"]), strides


def _device_of_any(array: Any, parameter: ArrayParameter, stream: Any) -> ExchangeDevice:
    return ExchangeDevice(array, parameter, stream)


_Found = tuple[int, int, tuple[int, ...], "tuple[int, ...] | None"]
"""The pointer, the GPU, the shape and the strides in elements (None: packed)."""


class _DLTensor(ctypes.Structure):
    """DLPack's ``DLTensor``, which a ``DLManagedTensor`` begins with."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_capsule_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _extents_and_strides(
    parameter: ArrayParameter, shape: Sequence[int], strides: Sequence[int] | None
) -> tuple[int, ...]:
    """The extents, and the strides but for the last one, as a launcher takes them.

    Where an extent is 1 its stride may be any number; the one of a packed array is passed.
    """
    if len(shape) != parameter.ndim:
        wanted = ", ".join(parameter.letters)
        raise parameter.value_error(
            f"has {len(shape)} dimensions; it must have {parameter.ndim}: [{wanted}]"
        )
    usual = (*_packed(tuple(shape)), 1)
    given = zip(shape, strides or usual, usual, strict=True)
    steps = tuple(step if extent > 1 else packed for extent, step, packed in given)
    if steps[-1] != 1:
        raise parameter.value_error(
            f"has the strides {tuple(strides or usual)}; elements along {parameter.letters[-1]} "
            "must be adjacent: pass a contiguous copy, or write the product with "
            f"{parameter.letters[-1]} as another index than the last one"
        )
    if len(shape) > 1 and 0 <= steps[-2] < shape[-1] and shape[-2] > 1:
        raise parameter.value_error(
            f"has rows of {shape[-1]} elements that begin {steps[-2]} elements apart: they overlap"
        )
    if min(steps) < 0:
        raise parameter.value_error(f"has a negative stride: {tuple(strides or usual)}")
    if parameter.written:
        _check_apart(parameter, shape, steps)
    return (*shape, *steps[:-1])


def _check_apart(parameter: ArrayParameter, shape: Sequence[int], strides: Sequence[int]) -> None:
    """No element of the result may be one at two places."""
    reach = 0
    for step, extent in sorted(zip(strides, shape, strict=True)):
        if extent > 1:
            if step <= reach:
                raise parameter.value_error(f"has strides {tuple(strides)}: its elements overlap")
            reach += step * (extent - 1)


def _packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a packed array but for the last one."""
    found: list[int] = []
    step = 1
    for extent in reversed(shape[1:]):
        step *= max(1, extent)
        found.append(step)
    return tuple(reversed(found))


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _on_host(parameter: ArrayParameter) -> TypeError:
    return parameter.type_error("is in the host's memory (NumPy?); copy it to a GPU first")


def _handle_of(stream: Any) -> int:
    """A stream's handle: an int, or an object of CuPy, PyTorch or cuda.core."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"stream is {_type_name(stream)}; it is a handle (int) or a stream's object")


def _is_of(array: Any, library: str) -> bool:
    module: str = type(array).__module__
    return module.partition(".")[0].startswith(library)


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
