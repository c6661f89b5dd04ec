"""Launches with an attribute.

CuPy's launch has no attributes, so it is the driver's ``cuLaunchKernelEx``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gemmgen.gpu.device import cupy
from gemmgen.gpu.driver_library import LaunchConfig, driver_function
from gemmgen.ir.launch_attribute import LaunchAttribute

_STREAMS = 64  # that a launch keeps configurations of


class DriverAttribute(ctypes.Structure):
    """``CUlaunchAttribute`` with a value that is an int."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


def attributed(
    attribute: LaunchAttribute, function: int, *shape: int
) -> Callable[[int, int, int], None]:
    """Launches of a function as CuPy's ``launchKernel`` has them, but with the attribute.

    ``shape``: the grid's three sides, the block's, and bytes of dynamic shared memory.  A launch
    takes a stream, the pointers to the arguments, and 0; it raises CuPy's ``CUDADriverError``.
    Raises ``CannotCheck`` without a driver of CUDA 12 or later.
    """
    need = "launches with attributes"
    launch = driver_function("cuLaunchKernelEx", need, *(ctypes.c_void_p,) * 4)
    own = DriverAttribute(attribute.number)
    own.value[0] = 1
    known: dict[int, Any] = {}  # several threads may launch at once, each on its own stream

    def start(stream: int, pointers: int, extra: int) -> None:
        config = known.get(stream)
        if config is None:
            if len(known) >= _STREAMS:
                known.clear()
            at = ctypes.addressof(own)
            made = LaunchConfig(shape[:3], shape[3:6], shape[6], stream, at, 1)
            config = known[stream] = ctypes.byref(made)
        error = launch(config, function, pointers, extra)
        if error:
            raise cupy().cuda.driver.CUDADriverError(error)

    return start
