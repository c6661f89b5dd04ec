"""The memory of a call on the CPU: tensors in poison, laid out as its ``Case`` says; and scratch
memory of a launch, made before it and checked after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from gemmgen.calling.dimensions import alignment, laid_out, values_of
from gemmgen.calling.inputs import as_stored
from gemmgen.calling.launches import Case
from gemmgen.ir.dtypes import ROUNDED
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import Real, Stored, near_tf32, poison, stored
from gemmgen.sim.packing import Argument
from gemmgen.sim.poisoned_memory import EmbeddedView, Sparse, aligned

Scratch = Stored | npt.NDArray[np.uint32]

DENSE = 1 << 27
"""Elements that a tensor may span in memory that is there as a whole."""


def allocated(
    interface: Interface, case: Case, numbers: Mapping[str, Real], unread: Collection[str] = ()
) -> dict[str, EmbeddedView]:
    """Each tensor with its ``numbers``, which are in their roles; those ``unread`` were never
    written."""
    values = values_of(interface, case)
    found: dict[str, EmbeddedView] = {}
    for param in interface.tensors:
        matrix = found[param.name] = _empty(interface, param, values, case.tight)
        if param.name not in unread and (param.read or not param.written):
            whole = as_stored(interface, param, numbers[param.name])
            own = stored(np.broadcast_to(whole, matrix.view.shape), param.dtype)
            if param.dtype in ROUNDED:
                own = near_tf32(own, cut=interface.arithmetic.cuts)
            matrix.view[...] = own
    return found


def arguments_of(
    interface: Interface, case: Case, memory: Mapping[str, EmbeddedView]
) -> dict[str, Argument]:
    """What the kernel is called with; memory for a launch alone is left out."""
    found: dict[str, Argument] = {**values_of(interface, case), **case.scalars(interface)}
    found |= {name: matrix.view for name, matrix in memory.items()}
    return {p.name: found[p.name] for p in interface.params if not p.is_scratch}


def overwritten(
    memory: Mapping[str, EmbeddedView], before: Mapping[str, Stored], output: str
) -> str | None:
    """A sentence about what a call changed that is not an element of its output, or None;
    ``before`` has copies of the tensors' elements."""
    for name, matrix in memory.items():
        touched = matrix.touched()
        if touched is not None:
            return f"{name}: {touched}"
        changed = matrix.changed(before[name]) if name != output else None
        if changed is not None:
            return f"the input {name} was written to: {changed}"
    return None


def scratch_of(interface: Interface, extents: Mapping[str, int]) -> dict[str, Scratch]:
    """For each scratch parameter an array of the size that it needs: zeros if it requires them,
    else poison."""
    return {param.name: _scratch(interface, param, extents) for param in interface.scratch}


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


def _empty(
    interface: Interface, param: Param, values: Mapping[str, int], tight: bool
) -> EmbeddedView:
    shape, strides = laid_out(interface, param, values)
    if max(n * abs(s) for n, s in zip(shape, strides, strict=True)) > DENSE:
        return Sparse.spanning(shape, strides, dtype=param.dtype)
    if tight:
        return EmbeddedView.at_the_end(shape, strides, dtype=param.dtype)
    offset = alignment(interface, param.name)
    return EmbeddedView.strided(shape, strides, offset=offset, dtype=param.dtype)


def _scratch(interface: Interface, param: Param, extents: Mapping[str, int]) -> Scratch:
    count = interface.scratch_elements(param, extents)
    if param.kind == "counter":
        return np.zeros(count, np.uint32)
    array = aligned(count, param.dtype)
    array[:] = 0 if param.zeroed else poison(count, param.dtype)
    return array
