"""A call's tensors in poisoned memory for the CPU run, laid out as its ``Case`` says."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from gemmgen.calling.dimensions import alignment, laid_out, values_of
from gemmgen.calling.inputs import as_stored
from gemmgen.calling.launches import Case
from gemmgen.ir.interface import Interface, Param
from gemmgen.numerics.formats import Real, Stored, stored
from gemmgen.sim.packing import Argument
from gemmgen.sim.poisoned_memory import EmbeddedView, Sparse

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
            matrix.view[...] = stored(np.broadcast_to(whole, matrix.view.shape), param.dtype)
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
    """A sentence about what a call changed that is no element of its output, or None; ``before``
    has copies of the tensors' elements."""
    for name, matrix in memory.items():
        touched = matrix.touched()
        if touched is not None:
            return f"{name}: {touched}"
        changed = matrix.changed(before[name]) if name != output else None
        if changed is not None:
            return f"the input {name} was written to: {changed}"
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
