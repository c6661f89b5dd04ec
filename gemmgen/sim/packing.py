"""The arguments of a call, checked against the interface and packed as a launch request."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import too_many_tiles
from gemmgen.calling.launches import Order
from gemmgen.calling.scalars import number
from gemmgen.calling.strides import bounds, is_folded, may_meet
from gemmgen.ir.interface import INT_MAX, Interface
from gemmgen.ir.launch_attribute import bits_of_attributes
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import NAMES, STORAGE, Stored
from gemmgen.sim.launch_request import (
    CheckedTensor,
    LaunchRequest,
    Pointer,
    Real,
    TransferredBuffer,
)

Array = npt.NDArray[np.generic]
Argument = Stored | npt.NDArray[np.uint32] | int | float

SENT_WHOLE = 2**28
"""Bytes; of larger memory only the tensors' own rows are sent to the kernel."""


def pack_launch(
    interface: Interface,
    arguments: Mapping[str, Argument],
    order: Order,
    seed: int,
    unreadable: frozenset[str],
    multiprocessors: int,
) -> LaunchRequest:
    names = [param.name for param in interface.params]
    for name in (*names, *arguments):
        if (name in names) != (name in arguments):
            problem = "needs an argument" if name in names else "has no parameter"
            raise CallError(f"{interface.name} {problem} {name}")
    values: dict[str, int] = {}
    for param in interface.params:
        value = arguments[param.name]
        if isinstance(value, np.ndarray):
            values[param.name] = _address(value)
        elif param.kind == "stride":
            values[param.name] = _checked_stride(param, value)
        elif param.kind in ("extent", "ld"):
            values[param.name] = _checked_int(param, value)
    packing = _Packing(interface, values)
    packed = tuple(packing.pack(param, arguments[param.name]) for param in interface.params)
    for requirement in interface.violated(values):
        raise CallError(f"{interface.name} requires {requirement.text()}")
    if interface.is_too_large(values):
        raise CallError(too_many_tiles(interface, values))
    grid = interface.grid(values, multiprocessors)
    tensors = packing.tensors(unreadable)
    return LaunchRequest(
        grid,
        interface.block,
        packing.buffers(),
        packed,
        order,
        seed,
        tensors,
        multiprocessors=multiprocessors,
        attributes=bits_of_attributes(interface.attribute),
    )


def _checked_int(param: Param, value: int | float) -> int:
    if isinstance(value, float) or not 0 <= value <= INT_MAX:
        raise CallError(f"{param.name} must be an int from 0 to {INT_MAX}, not {value!r}")
    return int(value)


def _checked_stride(param: Param, value: int | float) -> int:
    if isinstance(value, float) or not -(2**63) <= value < 2**63:
        raise CallError(f"{param.name} must be an int of 64 bits, not {value!r}")
    return int(value)


def _checked_scalar(param: Param, value: int | float) -> int | float | Real:
    found = number(param, value)
    if param.dtype == "i32":
        return int(found)
    return Real(found) if param.dtype == "f64" else found


def _wanted(param: Param) -> str:
    if STORAGE[param.dtype].name != NAMES[param.dtype]:
        return f"an array of {NAMES[param.dtype]} (or of its bits, {STORAGE[param.dtype]})"
    return f"a {NAMES[param.dtype]} array"


class _Packing:
    """Collects the memory of the tensors; tensors of one memory share a buffer."""

    def __init__(self, interface: Interface, values: Mapping[str, int]):
        self._steps = interface.steps
        self._pitch = dict(interface.pitch)
        self._interface, self._values = interface, values
        self._roots: list[Array] = []
        self._names: list[str] = []
        self._written: set[int] = set()
        self._tensors: list[tuple[Param, Array, Pointer]] = []

    def pack(self, param: Param, value: Argument) -> int | float | Real | Pointer:
        if param.kind != "tensor" and not param.is_scratch:
            if isinstance(value, np.ndarray):
                raise CallError(f"{param.name} must be a number, not an array")
            return _checked_scalar(param, value) if param.kind == "scalar" else int(value)
        if not isinstance(value, np.ndarray):
            raise CallError(f"{param.name} must be {_wanted(param)}, not {value!r}")
        self._check_scratch(param, value) if param.is_scratch else self._check_tensor(param, value)
        root = _root(value)
        same = [i for i, other in enumerate(self._roots) if other is root]
        index = same[0] if same else len(self._roots)
        if not same:
            self._roots.append(root)
            self._names.append(param.name)
        if _is_written(param):
            self._written.add(index)
        pointer = Pointer(index, _address(value) - _address(root))
        self._check_overlap(param, value)
        self._tensors.append((param, value, pointer))
        return pointer

    def _check_overlap(self, param: Param, array: Array) -> None:
        for other, before, _ in self._tensors:
            writes = _is_written(param) or _is_written(other)
            if writes and _share(array, before):
                written, read = (param, other) if _is_written(param) else (other, param)
                raise CallError(f"{written.name} overlaps {read.name} in memory")

    def buffers(self) -> tuple[TransferredBuffer, ...]:
        return tuple(
            TransferredBuffer(
                name, _bytes(root), _address(root), i in self._written, self._pieces(i)
            )
            for i, (name, root) in enumerate(zip(self._names, self._roots, strict=True))
        )

    def tensors(self, unreadable: frozenset[str]) -> tuple[CheckedTensor, ...]:
        return tuple(
            CheckedTensor(
                param.name,
                replace(pointer, offset=pointer.offset + _first_byte(array)),
                array.shape,
                _strides(array),
                _is_readable(param) and param.name not in unreadable,
                array.itemsize,
                param.is_scratch,
            )
            for param, array, pointer in self._tensors
        )

    def _pieces(self, buffer: int) -> tuple[tuple[int, int], ...]:
        """All of a buffer; if it is too large to send, the rows of its tensors."""
        whole = self._roots[buffer].nbytes
        if whole <= SENT_WHOLE:
            return ((0, whole),)
        pieces: list[tuple[int, int]] = []
        for _, array, pointer in self._tensors:
            if pointer.buffer != buffer or not array.size:
                continue
            row = array.shape[-1] * array.itemsize
            for index in np.ndindex(array.shape[:-1]):
                steps = zip(index, array.strides, strict=False)
                pieces.append((pointer.offset + sum(i * step for i, step in steps), row))
        return tuple(pieces)

    def _check_scratch(self, param: Param, array: Array) -> None:
        count = self._interface.scratch_elements(param, self._values)
        if array.dtype != scratch_dtype(param) or array.shape != (count,):
            wanted = f"{scratch_dtype(param)} of shape ({count},)"
            given = f"{array.dtype} of shape {array.shape}"
            raise CallError(f"{param.name} must be {wanted}, not {given}")
        if not array.flags.writeable or not array.flags.c_contiguous:
            raise CallError(f"{param.name} must be contiguous, and not read-only")
        if _address(array) % param.align:
            raise CallError(f"{param.name} must be aligned to {param.align} bytes")

    def _check_tensor(self, param: Param, array: Array) -> None:
        name = param.name
        # Libraries that have bfloat16, or FP8, store the same bits as we do.
        same = array.dtype.name == NAMES[param.dtype] and array.dtype.isnative
        if array.dtype != STORAGE[param.dtype] and not same:
            raise CallError(f"{name} must be {_wanted(param)}, not {array.dtype}")
        if param.written and not array.flags.writeable:
            raise CallError(f"{name} is written, but the array is read-only")
        shape = tuple(self._interface.size(letter, self._values) for letter in param.indices)
        if array.shape != shape:
            raise CallError(f"{name} must have shape {shape}, not {array.shape}")
        if array.size == 0:
            return
        self._check_strides(param, array)
        if param.written and is_folded(shape, _in_elements(array)):
            raise CallError(f"{name} is written, and two of its elements are one")

    def _check_strides(self, param: Param, array: Array) -> None:
        """The innermost first."""
        name, item = param.name, array.itemsize
        axes = zip(param.indices, self._steps(param), array.shape, array.strides, strict=True)
        for letter, step, size, stride in reversed(list(axes)):
            if size < 2:
                continue
            if step is None and stride != item:
                raise CallError(f"{name} must be contiguous along {letter}")
            if step is not None and stride != self._values[step] * item:
                what = "rows" if step == self._pitch.get(name) else f"matrices along {letter}"
                apart = f"{stride // item} elements apart"
                raise CallError(f"{name} has {what} {apart}, but {step} is {self._values[step]}")


def _first_byte(array: Array) -> int:
    """Relative to its first index; negative if strides are."""
    return bounds(array.shape, _in_elements(array))[0] * array.itemsize


def _in_elements(array: Array) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def scratch_dtype(param: Param) -> str:
    """NumPy's name of what the elements of scratch memory are stored as."""
    return "uint32" if param.kind == "counter" else STORAGE[param.dtype].name


def _is_written(param: Param) -> bool:
    return param.written or param.is_scratch


def _is_readable(param: Param) -> bool:
    """Whether the array's elements are defined before the launch."""
    if param.is_prepared:  # a pre-pass writes it
        return True
    return param.zeroed if param.is_scratch else param.read


def _strides(array: Array) -> tuple[int, ...]:
    """In bytes; a dimension of one element has any, and gets that of dense rows."""
    strides = [array.itemsize]
    for i in range(array.ndim - 1, 0, -1):
        least = abs(strides[0]) * max(array.shape[i], 1)
        strides.insert(0, array.strides[i - 1] if array.shape[i - 1] > 1 else least)
    return tuple(strides)


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def _share(one: Array, other: Array) -> bool:
    """Whether two arrays have a byte in common; also true if the test would take long."""
    if not np.may_share_memory(one, other):
        return False
    first, second = (((*a.shape, a.itemsize), (*a.strides, 1)) for a in (one, other))
    return may_meet(first, second, _address(other) - _address(one))


def _root(array: Array) -> Array:
    """The array whose memory ``array`` is a view of; if NumPy does not own that memory (a tensor
    of another library, a DLPack capsule), the memory from its first to its last element."""
    root = array
    while True:
        base: object = root.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # of as_strided
        if not isinstance(base, np.ndarray):
            break
        root = cast(Array, base)
    if root.flags.c_contiguous or root.flags.f_contiguous:
        return root
    low, high = bounds(array.shape, _in_elements(array))
    size = (high - low) * array.itemsize
    memory = (ctypes.c_ubyte * size).from_address(_address(array) + low * array.itemsize)
    return np.frombuffer(memoryview(memory), np.uint8)


def _bytes(root: Array) -> memoryview:
    return root.reshape(-1, order="A").view(np.uint8).data
