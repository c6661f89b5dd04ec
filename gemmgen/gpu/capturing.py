"""Loading a kernel while a stream of this thread is captured into a CUDA graph.

A capture in the default mode refuses calls that may allocate or synchronize, and loading a module
does both.  Neither touches the captured stream, so the thread's mode is relaxed meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu.driver_library import driver_function

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


@contextmanager
def loading_allowed() -> Generator[None]:
    """Lets this thread load modules while it captures; without a driver nothing changes."""
    try:
        exchange = driver_function(
            "cuThreadExchangeStreamCaptureMode", "capture modes", ctypes.POINTER(ctypes.c_int)
        )
    except CannotCheck:
        yield
        return
    mode = ctypes.c_int(RELAXED)
    exchange(ctypes.byref(mode))  # and now ``mode`` is the one before
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))
