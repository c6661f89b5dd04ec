"""Scratch memory of a launch: made before it, and checked after it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gemmgen.ir.interface import Interface, Param
from gemmgen.numerics.formats import Stored, poison
from gemmgen.sim.poisoned_memory import aligned

Scratch = Stored | npt.NDArray[np.uint32]
Argument = Scratch | int | float


def scratch_of(interface: Interface, extents: Mapping[str, int]) -> dict[str, Scratch]:
    """For each scratch parameter an array of the size that it needs: zeros if it requires them,
    else poison."""
    return {param.name: _array(interface, param, extents) for param in interface.scratch}


def _array(interface: Interface, param: Param, extents: Mapping[str, int]) -> Scratch:
    count = interface.scratch_elements(param, extents)
    if param.kind == "counter":
        return np.zeros(count, np.uint32)
    array = aligned(count, param.dtype)
    array[:] = 0 if param.zeroed else poison(count, param.dtype)
    return array


def not_left_zero(interface: Interface, arguments: Mapping[str, Argument]) -> str | None:
    """A sentence about a counter that the launch did not leave at 0, or None."""
    for param in interface.scratch:
        array = arguments[param.name]
        assert isinstance(array, np.ndarray)
        if param.zeroed and array.any():
            at = int(np.flatnonzero(array)[0])
            value = array[at]
            return f"the kernel leaves {value} in {param.name}[{at}], and the next launch needs 0"
    return None
