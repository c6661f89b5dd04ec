"""The factors of an operand's blocks, as a matrix of the operand's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from gemmgen.ir.blocked_letters import block
from gemmgen.ir.problem import Scaling
from gemmgen.numerics.axes import Named, Roles, axes_of

Matrix = TypeVar("Matrix", bound=Any)
"""An array of NumPy or of CuPy."""


class ScaledProduct(Roles, Protocol):
    """A product whose operands may have scales."""

    @property
    def scales(self) -> tuple[Scaling, ...]: ...


def factors_of(
    product: ScaledProduct, operand: Named, tensors: Mapping[str, Matrix], shape: tuple[int, ...]
) -> Matrix | None:
    """The factor of each element of ``operand``, whose ``shape`` in its roles this is; None
    without scales.  ``tensors`` are in their roles (``numerics.axes``)."""
    scaling = next((one for one in product.scales if one.of == operand.name), None)
    if scaling is None:
        return None
    found, own = tensors[scaling.tensor.name], scaling.tensor
    for axis, letter in enumerate(axes_of(product, own.name, own.letters)):
        before = (slice(None),) * axis
        # Of a block that is longer than the axis no more than the axis.
        elements = min(block(letter), max(shape[axis], 1))
        found = found.repeat(elements, axis)[(*before, slice(shape[axis]))]
    return found


def scaled(
    product: ScaledProduct, operand: Named, values: Matrix, tensors: Mapping[str, Matrix]
) -> Matrix:
    """``values`` of ``operand``, each times its factor, in the type of ``values``."""
    factors = factors_of(product, operand, tensors, values.shape)
    return values if factors is None else values * factors.astype(values.dtype)
