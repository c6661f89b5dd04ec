"""How many clusters of a kernel its GPU runs at a time, as the driver says."""

from __future__ import annotations

import ctypes

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu.driver import INVALID_CONTEXT, Loaded
from gemmgen.gpu.driver_library import LaunchConfig, driver_function


def active_clusters(loaded: Loaded) -> int:
    """The clusters of a kernel, at least one, that run on its GPU at a time.

    A cluster lies in one group of neighbouring multiprocessors (a GPC), so there may be fewer than
    all multiprocessors have room for.  Raises ``CannotCheck`` if none fits, or the driver refuses.
    """
    blocks = loaded.interface.cluster_blocks
    _, _, *block, shared = loaded.shape
    config = LaunchConfig((blocks, 1, 1), tuple(block), shared)
    pointers = (ctypes.POINTER(ctypes.c_int), ctypes.c_void_p, ctypes.POINTER(LaunchConfig))
    ask = driver_function("cuOccupancyMaxActiveClusters", "clusters of blocks", *pointers)
    found = ctypes.c_int()
    arguments = ctypes.byref(found), loaded.function.ptr, ctypes.byref(config)
    error = ask(*arguments)
    if error == INVALID_CONTEXT:  # a thread that has not used the GPU yet
        loaded.make_current()
        error = ask(*arguments)
    if error:
        raise CannotCheck(f"the driver does not count clusters of {blocks}: CUDA error {error}")
    if found.value < 1:
        raise CannotCheck(f"no cluster of {blocks} blocks fits on this GPU")
    return found.value
