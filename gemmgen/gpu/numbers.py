"""The scalars of a call: their defaults, and the numbers that a kernel takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import SupportsFloat, cast

import numpy as np

from gemmgen.errors import CallError
from gemmgen.interface import Param

DEFAULTS: Mapping[str, float] = {"alpha": 1.0, "beta": 0.0}
Number = np.float32 | np.float64
_FLOAT_MAX = float(np.finfo(np.float32).max)
_NUMBERS: tuple[type, ...] = (int, float, np.floating, np.integer)


def number(param: Param, arguments: Mapping[str, object]) -> Number:
    """The value of the scalar ``param``; ``CallError`` where there is none that it can hold."""
    name = param.name
    value = arguments.get(name, DEFAULTS.get(name))
    if value is None:
        raise CallError(f"{name} is missing: it has no default")
    if not isinstance(value, _NUMBERS):
        raise CallError(f"{name} is a {type(value).__qualname__}; the kernel takes a number")
    found = float(cast(SupportsFloat, value))
    if param.dtype == "f64":
        return np.float64(found)
    if math.isfinite(found) and abs(found) > _FLOAT_MAX:
        raise CallError(f"{name} = {found} is more than a float32 holds")
    return np.float32(found)
