"""The numbers of a call's tensors, drawn for a ``Case``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gemmgen.calling.dimensions import shared_letters
from gemmgen.calling.launches import Case, Data
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import INTEGERS
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.axes import axes_of, in_storage, sizes_of
from gemmgen.numerics.drawing import NUMPY, ArrayLibrary, Kind, draw, largest_count
from gemmgen.numerics.formats import GREATEST, Real, computing
from gemmgen.numerics.wide_integers import widen

Element = TypeVar("Element", bound=np.generic)

_KINDS: Mapping[Data, tuple[Kind, Kind, Kind, Kind]] = {
    "integers": ("odd", "even", "odd", "small"),
    "normal": ("normal", "normal", "normal", "normal"),
    "positive": ("positive", "positive", "positive", "normal"),
    "permutation": ("normal", "selection", "normal", "normal"),
    "NaN in A": ("odd", "even", "odd", "small"),
    "infinity in B": ("odd", "even", "odd", "small"),
    "infinities in A": ("positive", "positive", "positive", "normal"),
    "infinities in B": ("positive", "positive", "positive", "normal"),
    "wide integers": ("odd", "even", "odd", "small"),
}
"""The kinds of values of A, B, C and the epilogue's own tensors."""
SPREAD = 48.0
"""What random numbers are multiplied with to make them numbers of all the range of i8."""


def drawn(interface: Interface, case: Case, on: ArrayLibrary = NUMPY) -> dict[str, Real]:
    """Every tensor, the old C included, as numbers that its type represents, in its roles
    (``numerics.axes``); it has one element along letters whose matrices are shared."""
    product = contraction(interface)
    number = computing(product.types.acc)
    sizes = dict(zip(product.letters, case.shape, strict=True))
    *of_product, others = _KINDS[case.data]
    names = (product.a.name, product.b.name, product.c.name)
    kinds = dict(zip(names, of_product, strict=True))
    is_wide = case.data == "wide integers"
    count = largest_count(sizes[product.k], product.types, product.arithmetic)
    count = 1 if is_wide else count
    into = product.arithmetic.into
    scaled = into is not None and DECOMPOSITIONS[into].scaled
    found: dict[str, Real] = {}
    for at, param in enumerate(interface.tensors):
        there = sizes | dict.fromkeys(shared_letters(interface, param, case.layout), 1)
        axes = axes_of(product, param.name, param.indices)
        shape = sizes_of(axes, param.indices, there)
        kind, seed = kinds.get(param.name, others), 7919 * at + sum(case.shape)
        values = draw(kind, shape, seed, number, count, on)
        if param.dtype == "i8" and kind in ("normal", "positive"):
            values = values * number(SPREAD)
        values = on.held(values, param.dtype)
        found[param.name] = values.astype(number)
    if is_wide:
        widen(found[product.a.name], found[product.b.name], sum(case.shape), on)
    if scaled:
        for param, along_k in ((product.a, 1), (product.b, 0)):
            powers = _powers(found[param.name].shape, 1 - along_k)
            if case.data == "normal":
                powers = powers * _powers(found[param.name].shape, along_k)
            found[param.name] = found[param.name] * on.asarray(powers.astype(number))
    for which, operand in (("A", product.a), ("B", product.b)):
        if case.data.endswith(which) and operand.dtype not in INTEGERS:
            _mark(case.data, found[operand.name])
            if operand.dtype in GREATEST:
                found[operand.name] = on.held(found[operand.name], operand.dtype).astype(number)
    return found


def _powers(shape: tuple[int, ...], axis: int) -> Real:
    """Powers of two along an axis of matrices (0 or 1), neighbours different: with ``decompose``
    each row of A, and column of B, then has a scale of its own."""
    size = shape[axis - 2]
    powers = np.exp2(np.arange(size) * 5 % 11 - 5)
    return powers[:, None] if axis == 0 else powers


def _mark(data: Data, values: Real) -> None:
    """Writes the NaNs and infinities of ``data`` to the operand that it names."""
    match data:
        case "NaN in A":
            _mark_middle(values, np.nan)
        case "infinity in B":
            _mark_middle(values, np.inf)
        case _:
            values.fill(np.inf)


def _mark_middle(values: Real, mark: float) -> None:
    """Puts ``mark`` in the middle, if there is one: in one matrix of several."""
    if 0 not in values.shape:
        values[tuple(size // 2 for size in values.shape)] = mark


def as_stored(
    interface: Interface, param: Param, values: npt.NDArray[Element]
) -> npt.NDArray[Element]:
    """A view of a tensor in its roles in the order of its letters."""
    axes = axes_of(contraction(interface), param.name, param.indices)
    return in_storage(values, param.indices, axes)
