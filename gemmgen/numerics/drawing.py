"""Random test matrices, made by NumPy or a compatible library, such as CuPy.

Values are numbers to compute with: f64 if sums are, else f32, which represents f16 and bf16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.ir.arithmetic import PLAIN, Arithmetic
from gemmgen.ir.dtypes import DType, Types
from gemmgen.numerics.formats import Precision, Real, held

Kind = Literal["odd", "even", "small", "normal", "positive", "selection"]
"""``odd``, ``even``: small nonzero integers, whose sums are exact in every order; A's and B's
always differ.  ``small``: small integers, zeros among them.  ``normal``: zero-mean, of unit
variance.  ``positive``: uniform in (0.5, 1.5).  ``selection``: a single 1 in each column (a
permutation matrix if there are as many rows as columns)."""


@record
class ArrayLibrary:
    """An array library, typed as NumPy's: random numbers of a seed, conversion of NumPy's arrays,
    and rounding to an element type."""

    generator: Callable[[int], np.random.Generator]
    asarray: Callable[[npt.NDArray[np.generic]], Real]
    held: Callable[[Real, DType], Real]


def _asarray(values: npt.NDArray[np.generic]) -> Real:
    return values  # type: ignore[return-value]


NUMPY = ArrayLibrary(np.random.default_rng, _asarray, held)


def largest_count(k: int, types: Types, arithmetic: Arithmetic = PLAIN) -> int:
    """The number of magnitudes of integers, so that sums of ``k`` products are exact.

    f16 and bf16 represent integers up to 2048 and 256; smaller factors make larger results rare.
    Sums in i32 leave room for factors of most of the range of i8.

    Sums may keep fewer bits than those of f32 (``Arithmetic.fraction``).
    Factors of 1 and 2 alone could have larger sums for ``k`` above 2^``fraction`` / 2, if all
    signs were one; of random signs one sum of 10^55 is above 2^13 for k = 2^16 (Hoeffding: at most
    2 exp(-(2^13)^2 / (8 k))).
    """
    if types.acc == "i32" and types.c in ("i32", "f32") and k <= 2**16:
        return 60
    most = {"f16": 2, "bf16": 1, "i8": 1, "e4m3": 1, "e5m2": 1}.get(types.c, 4)
    exact = 2 ** (24 if arithmetic.fraction is None else arithmetic.fraction)
    count = most if k * (2 * most - 1) * 2 * most <= exact else 1
    assert k * (2 * count - 1) * (2 * count) <= 2**24
    return count


def draw(
    kind: Kind,
    shape: tuple[int, ...],
    seed: int,
    number: Precision,
    count: int,
    on: ArrayLibrary = NUMPY,
) -> Real:
    """Values of one kind; ``number`` is the type to compute with, ``count`` as ``largest_count``.

    The last two axes are a matrix's rows and columns.
    """
    rng = on.generator(seed)
    if 0 in shape:
        return on.asarray(np.zeros(shape).astype(number))
    if kind == "selection":
        return on.asarray(_selection(shape, seed, number))
    if kind == "normal":
        return rng.standard_normal(shape, number)
    if kind == "positive":
        return rng.random(shape, number) + number(0.5)
    if kind == "small":
        return rng.integers(-5, 6, shape).astype(number)
    drawn = rng.integers(-count, count, shape)
    return (2 * drawn + (1 if kind == "odd" else 2 * (drawn >= 0))).astype(number)


def _selection(shape: tuple[int, ...], seed: int, number: Precision) -> Real:
    *batches, rows, columns = shape
    matrices = math.prod(batches)
    found = np.zeros((matrices, rows, columns))
    chosen = np.resize(np.random.default_rng(seed).permutation(rows), (matrices, columns))
    found[np.arange(matrices)[:, None], chosen, np.arange(columns)] = 1
    return found.reshape(shape).astype(number)
