"""Numbers as sums of terms of a narrower type, whose products tensor cores compute: ``decompose``.

f32 has three bf16 terms: x0 = bf16(x), x1 = bf16(x - x0), x2 = bf16(x - x0 - x1).  The
differences are exact, and so is x0 + x1 + x2 = x, unless a term is below bf16's smallest number
(2^-133) or x is rounded to infinity.  bf16 has 8 bits: |x1| <= 2^-8 |x|, and |x2| <= 2^-17 |x|,
since x1 is exact if it is half of x0's last bit.  So the three products that six of nine omit
are together hardly more than 2^-24 |x y|, by which f32 rounds a product.
"""

from __future__ import annotations

from itertools import product

from gemmgen.ir.dtypes import DType

WHOLE: DType = "f32"
"""The type that is split."""
INTO: DType = "bf16"
PARTS = 3
PRODUCTS = (6, 9)
"""How many of the nine products of terms may be computed."""


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
    """The bound of the products that are left out, as a share of |x y|."""
    return 2.0**-24 * (1 + 2.0**-10) if count < PARTS**2 else 0.0
