"""Expected results, their error bounds, and comparisons with a kernel's results.

Tensors come in their roles (``numerics.axes``); results are compared in the output's storage order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.calling.inputs import as_stored
from gemmgen.calling.launches import Case, Data
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import held, numbers
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import FP8, HALVES, ROUNDED, DType
from gemmgen.ir.gemm_roles import Contraction, contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.tensor_core_rules import SumRule
from gemmgen.numerics.formats import GREATEST, TINY, UNIT, Real
from gemmgen.numerics.scales import scaled

Reference = Callable[[Mapping[str, np.ndarray | float]], np.ndarray]
"""C from the tensors (C's old values too), in their roles, and the scalars, by name."""
EXACT: tuple[Data, ...] = (
    *("integers", "wide integers", "permutation", "NaN in A", "infinity in B"),
)
"""Numbers whose sums are exact in any order; with f16 terms only integers have exact ones."""


def in_storage(interface: Interface, result: DeviceArray) -> DeviceArray:
    """A result in its roles in the output's storage order."""
    output = contraction(interface).c
    return cast(DeviceArray, as_stored(interface, output, cast(Real, result)))


def product_of(
    interface: Interface, values: Mapping[str, DeviceArray], *, absolute: bool
) -> DeviceArray:
    """A times B in float64, of C's shape; of ``values`` or of their absolute values."""
    found = contraction(interface)
    a, b = (
        scaled(found, operand, values[operand.name].astype("float64"), values)
        for operand in (found.a, found.b)
    )
    if absolute:
        a, b = abs(a), abs(b)
    shape = values[found.c.name].shape
    if 0 in (*a.shape, *b.shape):
        return cupy().zeros(shape, "float64")
    return cupy().broadcast_to(a @ b, shape)


@record
class Expected:
    """A result in float64 and its error bound, element by element, in storage order."""

    value: DeviceArray
    bound: DeviceArray

    def difference(self, stored: DeviceArray, dtype: DType = "f32") -> str | None:
        """A sentence with the first wrong element and the number of wrong ones, or None."""
        got = numbers(stored, dtype)
        if got.shape != self.value.shape:
            return f"shape {got.shape} instead of {self.value.shape}"
        if 0 in got.shape:
            return None
        cp = cupy()
        wide = got.astype("float64")
        with np.errstate(invalid="ignore"):
            near = abs(wide - self.value) <= self.bound
        same = cp.equal(wide, self.value) | (cp.isnan(wide) & cp.isnan(self.value))
        beyond = cp.isinf(wide) & (held(self.value + cp.copysign(self.bound, wide), dtype) == wide)
        wrong = ~(near | same | beyond)
        count = int(cp.count_nonzero(wrong))
        if not count:
            return None
        at = tuple(int(i) for i in np.unravel_index(int(cp.argmax(wrong.ravel())), got.shape))
        found, want = float(wide[at]), float(self.value[at])
        return (
            f"C{list(at)} = {found!r} instead of {want!r} (may differ by "
            f"{float(self.bound[at]):.3g}); {count} elements are wrong"
        )


def wanted(
    interface: Interface,
    values: Mapping[str, DeviceArray],
    case: Case,
    reference: Reference | None,
    *,
    exact: bool = False,
) -> Expected:
    """The expected result of a call; ``exact``: on integers ``reference`` is met bit by bit."""
    if reference is None:
        return expected(interface, values, case)
    numbers = case.scalars(interface)
    given: dict[str, np.ndarray | float] = {
        name: value.astype("float64").get() for name, value in values.items()
    }
    value = cupy().asarray(reference({**given, **numbers})).astype("float64")
    if exact and case.data == "integers":
        return exactly(interface, value)
    scale = abs(numbers.get("alpha", 1.0))
    size = product_of(interface, values, absolute=True) * scale + abs(value)
    product = contraction(interface)
    data = case.data if _truncates(product) else "normal"
    bound = size * rounding(product, values, data)
    return within(interface, value, bound + scale * _beyond_range(product, values))


def expected(interface: Interface, values: Mapping[str, DeviceArray], case: Case) -> Expected:
    """alpha * A B + beta * C, within 0 (``EXACT``), 16 eps G, or gamma_K G.

    G = |alpha| |A| |B| + |beta| |C|; gamma_n = n eps / (1 - n eps) is the bound for any order of
    summation (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), used if all
    products are positive; 16 eps is far above the error of zero-mean products.
    """
    product, numbers = contraction(interface), case.scalars(interface)
    alpha, beta = numbers.get("alpha", 1.0), numbers.get("beta", 0.0)
    value = product_of(interface, values, absolute=False) * alpha
    old = values[product.c.name].astype("float64")
    if beta != 0:
        value = value + old * beta
    if case.data in EXACT and not (product.arithmetic.lost and case.data == "permutation"):
        return exactly(interface, value)
    size = product_of(interface, values, absolute=True) * abs(alpha)
    if beta != 0:
        size = size + abs(old) * abs(beta)
    bound = size * rounding(product, values, case.data)
    return within(interface, value, bound + abs(alpha) * _beyond_range(product, values))


def exactly(interface: Interface, value: DeviceArray) -> Expected:
    """The elements that ``value``, in its roles, is rounded to."""
    rounded = held(value, contraction(interface).c.dtype).astype("float64")
    stored = in_storage(interface, rounded)
    return Expected(stored, cupy().zeros(stored.shape, "float64"))


def within(interface: Interface, value: DeviceArray, bound: DeviceArray) -> Expected:
    """``value`` give or take ``bound`` (both in their roles), and then rounded to C's type."""
    product = contraction(interface)
    dtype = product.c.dtype
    if dtype in GREATEST:
        value = cupy().clip(value, *GREATEST[dtype])
    if dtype != product.types.acc:
        bound = bound + abs(value) * (2 * UNIT[dtype]) + TINY[dtype]
    return Expected(in_storage(interface, value), in_storage(interface, bound))


def _beyond_range(product: Contraction, values: Mapping[str, DeviceArray]) -> DeviceArray | float:
    """What sums lose of elements far below the largest of their row or column, whose scaled terms
    end (``ir/decompositions.py``): 2^-38 of the product of the largest, for each k."""
    into = product.arithmetic.into
    a, b = (abs(values[x.name]).astype("float64") for x in (product.a, product.b))
    if into is None or not DECOMPOSITIONS[into].scaled or 0 in (*a.shape, *b.shape):
        return 0.0
    rows = cupy().max(a, axis=-1, keepdims=True)
    columns = cupy().max(b, axis=-2, keepdims=True)
    return rows * columns * (a.shape[-1] * 2.0**-38)


def rounding(product: Contraction, values: Mapping[str, DeviceArray], data: Data) -> float:
    """The bound of the accumulators' rounding error, as a share of G."""
    return rounding_of(product, values[product.a.name].shape[-1], data)


def rounding_of(product: Contraction, terms: int, data: Data) -> float:
    """The same of ``terms`` products.

    With promotion, each partial accumulator loses a share of its own terms' part of G.  These parts
    add up to G, so together they lose the share of one, and the promotions add the error of a sum
    of as many terms (Higham, section 3.1).
    """
    depth, unit = terms + 2, UNIT[product.types.acc]
    if product.arithmetic.terms is None:
        return _of_a_sum(product, depth, data)
    promotions = -(-depth // product.arithmetic.terms)
    each = _of_a_sum(product, min(depth, product.arithmetic.terms + 2), data)
    return (1 + each) * (1 + promotions * unit / (1 - promotions * unit)) - 1


def _of_a_sum(product: Contraction, depth: int, data: Data) -> float:
    """The same of one sum of ``depth`` terms.

    Products of both signs, rounded to nearest, lose a few u G for any K: 16 is far above.  Tensor
    cores multiply halves exactly, but add N products at a time (8 on an A100, 16 on an H100): they
    align these and the accumulator to the largest of them, and truncate all at its last bit, or a
    bit or two after it, and then the new sum at its own last bit: always towards zero (Fasi,
    Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science
    7, 2021; for the H100 Li et al., FTTN, 2024).  The errors of the products have their signs, and
    stay at a few u G.  The errors of a sum s have its sign, and accumulate: each of K / N steps
    loses about 0.7 u |s|, at most 2 u |s|.  Products of variance 1 give G = 0.64 K, and a sum that
    ends z standard deviations from zero averages about z sqrt(K) / 2.  So it loses
    0.7 z sqrt(K) / (1.3 N) of u G: with N = 8 and z = 5.5, the worst of 10^7 elements, that is
    0.37 sqrt(K), or 24 for K = 4096, for which an NVIDIA H200 loses up to 18 (cuBLAS as well).
    sqrt(K) / 2 is above that and, from K = 1024 on, above 16.

    With ``decompose`` each product of terms truncates the accumulator as a whole product would:
    the depth, and sqrt(K) / 2, are multiplied by their number.  The error of the omitted products
    of bf16 terms, u, is within that; that of f16 terms is added (``ir/decompositions.py``).
    """
    rule = product.arithmetic.rule
    if rule is not None and product.arithmetic.fraction is not None:
        return _of_few_bits(depth, rule, data)
    unit = UNIT[product.types.acc]
    if product.arithmetic.products > 1:
        most = product.arithmetic.products * (
            depth if data == "positive" else max(16.0, depth**0.5 / 2)
        )
        most += product.arithmetic.lost
        return unit * most / (1 - depth * product.arithmetic.products * unit)
    if data != "positive":
        return unit * (max(16.0, depth**0.5 / 2) if _truncates(product) else 16.0)
    return depth * unit / (1 - depth * unit)


def _truncates(product: Contraction) -> bool:
    """Whether accumulators are truncated, so that errors of positive products add up."""
    of_terms = product.arithmetic.products > 1
    return of_terms or {product.a.dtype, product.b.dtype} <= {*HALVES, *FP8, *ROUNDED}


def _of_few_bits(depth: int, rule: SumRule, data: Data) -> float:
    """The same of an accumulator that keeps ``rule.bits`` after the leading one (wgmma of FP8 on
    Hopper).

    A group of N products (32 there) at a time are aligned to the largest exponent among them and
    the sum so far, cut off ``rule.fraction`` bits below it, at least as many, and added to the sum,
    which is cut off at its own (decision 96; DeepSeek-V3 Technical Report, 2024, section 3.3.2, has
    seen errors of 2% for K = 4096).

    All that is aligned in a step is at most G, as what is cut off only lessens a magnitude.  So
    each of N + 1 addends and the new sum lose less than 2^-bits G: in ceil(K / N) steps at most
    (N + 2) ceil(K / N) 2^-bits G, whatever the signs.  Positive products lose a seventh of that.

    Of products of both signs it is as in ``rounding``, with u = 2^-bits / 2: 16 u G, and for N = 32
    from K = 16384 on sqrt(K) / 8.
    """
    lost = 2.0**-rule.bits
    if data == "positive":
        return (rule.group + 2) * -(-depth // rule.group) * lost
    return lost / 2 * max(16.0, 4 * depth**0.5 / rule.group)
