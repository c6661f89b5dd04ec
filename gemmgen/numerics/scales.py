"""The factors of an operand's blocks, as a matrix of the operand's shape."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmgen.ir.blocked_letters import block
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.numerics.axes import axes_of
from gemmgen.numerics.formats import Real


def factors_of(
    problem: Problem, operand: Tensor, tensors: Mapping[str, Real], shape: tuple[int, ...]
) -> Real | None:
    """The factor of each element of ``operand``, whose ``shape`` in its roles this is; None
    without scales.  ``tensors`` are in their roles (``numerics.axes``)."""
    scaling = next((one for one in problem.scales if one.of == operand.name), None)
    if scaling is None:
        return None
    found, own = tensors[scaling.tensor.name], scaling.tensor
    for axis, letter in enumerate(axes_of(problem, own.name, own.letters)):
        # Of a block that is longer than the axis no more than the axis.
        whole = np.repeat(found, min(block(letter), max(shape[axis], 1)), axis)
        found = np.take(whole, range(shape[axis]), axis)
    return found


def scaled(
    problem: Problem, operand: Tensor, values: Real, tensors: Mapping[str, Real]
) -> Real:
    """``values`` of ``operand``, each times its factor, in the type of ``values``."""
    factors = factors_of(problem, operand, tensors, values.shape)
    return values if factors is None else values * factors.astype(values.dtype)
