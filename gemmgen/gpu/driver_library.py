"""Functions of the NVIDIA driver that CuPy does not have."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from gemmgen.base.errors import CannotCheck

LIBRARY = "libcuda.so.1"
"""The driver's library: it is wherever there is a driver."""


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


@cache
def driver_function(name: str, need: str, *types: Any) -> Callable[..., int]:
    """A function of CUDA 12's driver with arguments of these ``ctypes``, which returns an error.

    ``need``: what of CUDA 12 the kernel needs.  Raises ``CannotCheck`` without such a driver.
    """
    try:
        function = getattr(ctypes.CDLL(LIBRARY), name)
    except OSError as failure:
        raise CannotCheck(f"the NVIDIA driver's library can't be loaded: {failure}") from None
    except AttributeError:
        raise CannotCheck(
            f"the NVIDIA driver is older than CUDA 12, whose {need} the kernel needs"
        ) from None
    function.argtypes, function.restype = types, ctypes.c_int
    return function
