"""The scalars of a call: their defaults, and the numbers that a kernel takes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from gemmgen.base.errors import CallError
from gemmgen.ir.param import Param

DEFAULTS: Mapping[str, float] = {"alpha": 1.0, "beta": 0.0}
_FLOAT_MAX = float(np.finfo(np.float32).max)
_NUMBERS: tuple[type, ...] = (int, float, np.floating, np.integer, np.bool_)


def number(param: Param, value: object) -> float:
    """The value of the scalar ``param``, None for its default; ``CallError`` if it has none, or one
    that is out of range.

    Python's and NumPy's numbers are accepted, and 0-dimensional arrays and PyTorch tensors in host
    memory.  One on a GPU is refused, since reading it would synchronize with the GPU.
    """
    name = param.name
    if value is None:
        value = DEFAULTS.get(name)
        if value is None:
            raise CallError(f"{name} is missing: it has no default")
    found = value if type(value) is float else _float(name, value)
    if param.dtype == "i32":
        return _integer(name, found)
    if param.dtype != "f64" and not -_FLOAT_MAX <= found <= _FLOAT_MAX and math.isfinite(found):
        raise CallError(f"{name} = {found} is more than a float32 holds")
    return found


def _integer(name: str, value: float) -> int:
    """``value`` as an i32."""
    if not (math.isfinite(value) and value == int(value)):
        raise CallError(f"{name} = {value} is not an integer, and the kernel takes an integer")
    if not -(2**31) <= value < 2**31:
        raise CallError(f"{name} = {int(value)} is more than an int32 holds")
    return int(value)


def _float(name: str, value: object) -> float:
    if isinstance(value, np.ma.MaskedArray):
        raise CallError(f"{name} is masked; the kernel takes a number")
    if isinstance(value, np.ndarray):
        array = cast(np.ndarray, value)
        value = array[()] if array.ndim == 0 else array
    elif not isinstance(value, _NUMBERS):
        value = _lent(name, value)
    if not isinstance(value, _NUMBERS):
        raise CallError(f"{name} is a {type(value).__qualname__}; the kernel takes a number")
    try:
        return float(cast(float, value))
    except OverflowError:
        raise CallError(f"{name} is more than a float64 holds") from None


def _lent(name: str, value: object) -> object:
    """The number in a 0-dimensional array of a library; other values are returned unchanged."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_tensor(name, value, torch)
    if getattr(value, "ndim", None) == 0 and hasattr(value, "__cuda_array_interface__"):
        raise CallError(f"{name} is an array on a GPU; the kernel takes a number: pass .item()")
    return value


def _of_tensor(name: str, tensor: Any, torch: Any) -> object:
    if tensor.ndim != 0:
        raise CallError(
            f"{name} is a tensor of {tensor.ndim} dimensions; the kernel takes a number"
        )
    if tensor.requires_grad and torch.is_grad_enabled():
        raise CallError(
            f"{name} requires a gradient, which a kernel does not compute; pass .detach()"
        )
    if not tensor.is_cpu:
        raise CallError(
            f"{name} is a tensor on {tensor.device}; the kernel takes a number: pass .item()"
        )
    try:
        return tensor.item()
    except RuntimeError:  # within vmap, or of FakeTensorMode
        raise CallError(
            f"{name} is a tensor without data here; the kernel takes a number"
        ) from None
