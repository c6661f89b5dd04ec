"""Numbers as sums of terms of a narrower type, whose products tensor cores compute: ``decompose``.

f32 has three bf16 terms: x0 = bf16(x), x1 = bf16(x - x0), x2 = bf16(x - x0 - x1).  The
differences are exact, and so is x0 + x1 + x2 = x, unless a term is below bf16's smallest number
(2^-133) or x is rounded to infinity.  bf16 has 8 bits: |x1| <= 2^-8 |x|, and |x2| <= 2^-17 |x|,
since x1 is exact if it is half of x0's last bit.  So the three products that six of nine omit
are together hardly more than 2^-24 |x y|, by which f32 rounds a product.

Two f16 terms have 11 bits each.  f16 ends at 2^-24 and 65504, so each row of A and each column of B
is first multiplied by a power of two, its scale, with which its largest element is at least 2^14
and below 2^15; the accumulators are multiplied by the inverses.  |x1| <= 2^-11 |x|, and
|x - x0 - x1| <= 2^-23 |x|, as x - x0 has 13 bits at most, or 2^-25 of what is scaled, which is
2^-39 of the largest element.  So x0 y0 + x0 y1 + x1 y0 differs from x y by (1 + 1/2 + 1/2) 2^-22
|x y| at most, besides 2^-38 of the largest elements' product.
"""

from __future__ import annotations

from itertools import product
from typing import Literal

from gemmgen.base.choices import value_shown
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType

WHOLE: DType = "f32"
"""The type that is split."""


@record
class Decomposition:
    """How f32 is split into terms of a type.

    ``products``: how many products of terms may be computed, the usual number first.  ``scaled``:
    rows of A and columns of B are scaled by powers of two.  ``lost``: the bound of a product's
    error, in units of 2^-24 of it, where the bound of the additions leaves no room for it.
    """

    parts: int
    products: tuple[int, ...]
    scaled: bool = False
    lost: int = 0


DECOMPOSITIONS: dict[DType, Decomposition] = {
    "bf16": Decomposition(3, (6, 9)),
    "f16": Decomposition(2, (3, 4), scaled=True, lost=8),
}
"""By the type of the terms."""
PARTS = DECOMPOSITIONS["bf16"].parts


Fast = bool | Literal["bf16", "f16"]
"""Whether callers allow split f32, and the type of its terms; True is bf16."""


def allowed_terms(fast: object) -> DType | None:
    """The type of the terms that a caller's ``fast`` allows; None: f32 is not to be split.  Raises
    ``UsageError`` for other values."""
    if fast is False or fast is None:
        return None
    if fast is True:
        return "bf16"
    if not (isinstance(fast, str) and fast in DECOMPOSITIONS):
        known = " or ".join(f'"{into}"' for into in DECOMPOSITIONS)
        raise UsageError(f"fast={value_shown(fast)}: it is True, False, {known}")
    return fast


def products_of(parts: int, count: int) -> tuple[tuple[int, int], ...]:
    """The pairs of terms of A and B that are multiplied, smallest products first: (0, 0) is
    last."""
    every = sorted(product(range(parts), range(parts)), key=lambda pair: (-sum(pair), -pair[0]))
    return tuple(every[-count:])


def sum_note(tensors: tuple[str, str], parts: int) -> str:
    """What a reader of the products must know: ``A = A[0] + A[1] + A[2]``."""
    terms = (" + ".join(f"{name}[{i}]" for i in range(parts)) for name in tensors)
    equal = ", ".join(f"{name} = {its}" for name, its in zip(tensors, terms, strict=True))
    return f"multiply the tile: {equal}; the smallest products first"


def product_note(tensors: tuple[str, str], pair: tuple[int, int]) -> str:
    """The product that a loop adds: ``A[2] * B[0]``."""
    return " * ".join(f"{name}[{term}]" for name, term in zip(tensors, pair, strict=True))


def left_out(count: int) -> float:
    """The bound of the products of bf16 terms that are left out, as a share of |x y|."""
    return 2.0**-24 * (1 + 2.0**-10) if count < PARTS**2 else 0.0
