"""Results checked in all rows, or in some that are drawn at random: a float64 product of all of a
large matrix takes longer than what it checks."""

from __future__ import annotations

import random
from collections.abc import Mapping

from gemmgen.calling.launches import Case
from gemmgen.gpu.compare import Reference, wanted
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import numbers
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.numerics.axes import axes_of

_SEED = 5


def complaint(
    interface: Interface,
    values: Mapping[str, DeviceArray],
    case: Case,
    reference: Reference | None,
    output: DeviceArray,
    *,
    limit: int | None = None,
) -> str | None:
    """What is wrong with ``output`` of finite ``values`` (in their roles), or None.

    With a ``limit`` this many rows of C are compared with float64, and in all others infinities and
    NaNs are looked for.
    """
    product = contraction(interface)
    rows = values[product.c.name].shape[-2]
    if limit is None or limit >= rows:
        expected = wanted(interface, values, case, reference)
        return expected.difference(output, product.c.dtype)
    if not bool(cupy().isfinite(numbers(output, product.c.dtype)).all()):
        return "an infinity or a NaN where all numbers are finite"
    chosen = cupy().asarray(sorted(random.Random(_SEED).sample(range(rows), limit)))
    some = {name: _rows_of(interface, name, value, chosen) for name, value in values.items()}
    axis = product.c.indices.index(product.m)
    expected = wanted(interface, some, case, reference)
    return expected.difference(cupy().take(output, chosen, axis=axis), product.c.dtype)


def _rows_of(interface: Interface, name: str, value: DeviceArray, rows: DeviceArray) -> DeviceArray:
    """A tensor's rows of C; one that is the same for all of them is left as it is."""
    product = contraction(interface)
    letters = next(param.indices for param in interface.tensors if param.name == name)
    axes = axes_of(product, name, letters)
    axis = axes.index(product.m) if product.m in axes else None
    if axis is None or value.shape[axis] == 1:
        return value
    return cupy().take(value, rows, axis=axis)
