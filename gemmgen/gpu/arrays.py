"""The array libraries of a kernel's arguments: CuPy, PyTorch, and others through DLPack.

PyTorch is never imported here: a caller that passes its tensors has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from gemmgen.base.errors import CallError
from gemmgen.base.memo import Memo
from gemmgen.calling.arguments import View
from gemmgen.calling.dynamo import leave_untraced
from gemmgen.calling.element_types import array_type
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.plan import LaunchPlan
from gemmgen.gpu.tensors import Torch, TorchArrays, TorchPlans
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import STORAGE


class CupyPlans:
    """The plans of earlier calls, keyed by all properties of their tensors except addresses.

    Arrays are ``Any`` here: a ``cast`` costs as much as reading a shape.

    ``_c_contiguous`` is an attribute that all versions have, faster than ``flags`` or ``strides``.
    """

    def __init__(self, most: int, *, several_gpus: bool) -> None:
        self._plans: Memo[Hashable, LaunchPlan] = Memo(most)
        self._several = several_gpus

    def find(
        self, tensors: Sequence[Any], *, checked: bool = False
    ) -> tuple[LaunchPlan, list[int]] | None:
        """The plan of a call with these tensors, and their addresses.

        None for new tensors, and for those that must be checked at each call, unless they have
        been (``checked``).
        """
        try:
            key = _of_three(*tensors) if len(tensors) == 3 else _of_any(tensors)
            plan = self._plans.get((key, _gpus(tensors)) if self._several else key)
            return None if plan is None else (plan, [array.data.ptr for array in tensors])
        except AttributeError:  # an array of another library
            return None

    def remember(self, tensors: Sequence[Any], plan: LaunchPlan) -> None:
        if not hasattr(tensors[0], "_c_contiguous"):
            return  # CuPy without this attribute: no call is cached
        key = _of_three(*tensors) if len(tensors) == 3 else _of_any(tensors)
        self._plans.put((key, _gpus(tensors)) if self._several else key, plan)


def _of_any(tensors: Sequence[Any]) -> Hashable:
    return tuple([(a.shape, a._c_contiguous or a.strides, a.dtype) for a in tensors])


def _of_three(a: Any, b: Any, c: Any) -> Hashable:
    """The same for three tensors: a flat tuple takes a third of the time."""
    return (
        a.shape,
        b.shape,
        c.shape,
        a.dtype,
        b.dtype,
        c.dtype,
        a._c_contiguous or a.strides,
        b._c_contiguous or b.strides,
        c._c_contiguous or c.strides,
    )


def _gpus(tensors: Sequence[Any]) -> Hashable:
    return tuple([array.data.device_id for array in tensors])


class CupyArrays:
    """The launcher's interface to an array library, as ``TorchArrays`` is."""

    name = "CuPy"

    def __init__(self) -> None:
        cp = cupy()
        self._current = cp.cuda.get_current_stream
        self._several_gpus = cp.cuda.runtime.getDeviceCount() > 1

    def plans(self, most: int) -> CupyPlans:
        """An empty cache of ``most`` plans."""
        return CupyPlans(most, several_gpus=self._several_gpus)

    def check(self, name: str, value: object) -> None:
        """Raises ``CallError`` for an array that no kernel can take in its present state."""
        array = cast(DeviceArray, value)
        item = array.dtype.itemsize
        if any(stride % item for stride in array.strides):
            raise CallError(f"{name} has strides of {array.strides} bytes, not multiples of {item}")

    def view(self, value: object) -> View:
        array = cast(DeviceArray, value)
        strides = tuple(stride // array.dtype.itemsize for stride in array.strides)
        memory = array.data
        return View(memory.ptr, array.shape, strides, array.dtype.name, memory.device_id)

    def allocator(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        output: Param,
        kind: str,
        gpu: int,
    ) -> Callable[[], tuple[object, int]]:
        """A function that returns a new array for ``output``, of these strides (in elements) and
        of the type with the name ``kind``, and its address."""
        *outer, columns = shape
        row = strides[-2] if outer else columns
        make = partial(cupy().ndarray, (*outer, row), _cupy_type(output, kind))

        def dense() -> tuple[object, int]:
            array = make()
            return array, array.data.ptr

        def padded() -> tuple[object, int]:
            array = make()[..., :columns]
            return array, array.data.ptr

        return dense if row == columns else padded

    def memory(self, size: int, gpu: int, *, zeroed: bool) -> tuple[object, int]:
        """``size`` bytes, allocated in the current stream's order, and their address."""
        array = (cupy().zeros if zeroed else cupy().empty)((size,), "uint8")
        return array, array.data.ptr

    def stream(self, gpu: int) -> int:
        """The caller's current stream, a raw handle."""
        return self._current().ptr

    def stream_object(self, gpu: int) -> object:
        """The object that keeps that handle from being reused by another stream."""
        return self._current()


def _cupy_type(output: Param, kind: str) -> np.dtype[np.generic]:
    """CuPy's type of the name ``kind``; ``CallError`` if this version of CuPy lacks it."""
    found = array_type(output, kind)
    try:
        cupy().ndarray((0,), found)
    except (TypeError, ValueError):
        bits = STORAGE[output.dtype].name
        raise CallError(
            f"{output.name} is {kind}, a type that this CuPy lacks; pass {output.name} as an array "
            f"of {bits}, for its bits"
        ) from None
    return found


Plans = CupyPlans | TorchPlans
Library = CupyArrays | TorchArrays
_LIBRARIES: dict[str, Library] = {}
_OF_TYPE: dict[type, Library] = {}
"""By the types of arguments."""


def library(value: object) -> Library | None:
    """The library of ``value``, or None if it is neither CuPy nor PyTorch."""
    found = _OF_TYPE.get(type(value))
    if found is None:
        found = _library(value)
        if found is not None:
            _OF_TYPE[type(value)] = found
    return found


def _library(value: object) -> Library | None:
    if isinstance(value, cupy().ndarray):
        return _LIBRARIES.setdefault("cupy", CupyArrays())
    torch = cast(Torch | None, sys.modules.get("torch"))
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    leave_untraced()
    return _LIBRARIES.setdefault("torch", TorchArrays(torch))


def adopt(name: str, value: object) -> tuple[Library, object]:
    """A CuPy view of an array of another library, without a copy; ``CallError`` for host memory."""
    found = library(value)
    if found is not None:
        return found, value
    on_device = getattr(value, "__dlpack_device__", None)
    if hasattr(value, "__cuda_array_interface__"):
        array = cupy().asarray(value)
    elif on_device is not None and on_device()[0] == 2:
        array = cupy().from_dlpack(value)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if hasattr(value, "__array_interface__") or on_device is not None:
            raise CallError(f"{name} is a {kind} in host memory; move it to the GPU (cupy.asarray)")
        raise CallError(f"{name} is a {kind}; the kernel takes a CuPy array or a PyTorch tensor")
    found = library(array)
    assert found is not None, "what was adopted is CuPy's"
    return found, array
