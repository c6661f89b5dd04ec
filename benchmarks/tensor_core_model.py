"""Candidates for how a tensor core adds the products of an instruction, evaluated with NumPy.

Published: a group of products and the accumulator are aligned to the largest exponent, cut off a
fixed number of bits below it, added exactly, and the sum is rounded once (Fasi, Higham, Mikaitis
and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021; Xie et al., "MMA-Sim", 2025; Khattak
and Mikaitis, "Accurate models of NVIDIA tensor cores", 2025).  A ``Rule`` has what may differ.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property

import numpy as np


@dataclass(frozen=True)
class Format:
    """``fraction`` bits of ``exponent`` bits' numbers; e4m3 has no infinity and one NaN."""

    exponent: int
    fraction: int
    word: str
    shift: int = 0  # bits below the fraction that are dropped: tf32 in an f32
    finite: bool = False

    @property
    def least(self) -> int:
        """The exponent of the smallest normal number."""
        return 2 - (1 << (self.exponent - 1))

    @property
    def greatest(self) -> int:
        return (1 << (self.exponent - 1)) - (0 if self.finite else 1)


FORMATS = {
    "f64": Format(11, 52, "u8"),
    "f32": Format(8, 23, "u4"),
    "tf32": Format(8, 10, "u4", shift=13),
    "f16": Format(5, 10, "u2"),
    "bf16": Format(8, 7, "u2"),
    "e4m3": Format(4, 3, "u1", finite=True),
    "e5m2": Format(5, 2, "u1"),
}


@dataclass(frozen=True)
class Rule:
    """``group`` products are added at once, in the ``order`` that ``steps_of`` gives.

    ``fraction``: bits kept below the largest exponent, the rest ``cut`` toward ``zero`` or by
    ``floor``. ``accumulator``: ``aligned`` with the products, added to their sum in a second
    alignment (``late``), or ``added`` after the instruction, which then starts from zero, rounded
    to nearest. ``exponents``: of products, the ``sum`` of the factors', that of the factors as
    ``f16``, in which all but zeros of e4m3 are normal, or the product's ``normalized`` one. The sum
    is rounded to ``bits`` of fraction: ``result`` toward ``zero`` or to ``nearest``. Zero products
    (``zeros``) and a zero ``start`` are ``ignored`` where the largest exponent is chosen, or
    ``counted`` with the least exponent of their formats; it is at least ``least``. ``overflow``:
    ``infinity`` or the ``largest`` number. ``signs``: zero results are ``positive``, have the sign
    of the sum that was cut (``kept``), or that of equal zeros too (``ieee``). ``products``: from
    2^128 on they are infinite (``bounded``), or not.
    """

    group: int
    order: str = "run"
    fraction: int = 25
    accumulator: str = "aligned"
    cut: str = "zero"
    exponents: str = "sum"
    result: str = "zero"
    bits: int = 23
    zeros: str = "ignored"
    start: str = "ignored"
    least: int | None = None
    overflow: str = "infinity"
    signs: str = "positive"
    products: str = "unbounded"

    def text(self) -> str:
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())


@dataclass(frozen=True)
class Sequential:
    """One product after the other, each ``fma`` (or a rounded product and a sum)."""

    order: str = "up"
    step: str = "fma"

    def text(self) -> str:
        return f"sequential order={self.order} step={self.step}"


Candidate = Rule | Sequential


def steps_of(k: int, group: int, order: str) -> list[list[int]]:
    """Which of ``k`` products are added together, group by group: a ``run`` of neighbors; pairs of
    neighbors at a distance (``pairs``); or every second, fourth ... product (``strides``)."""
    parts = k // group
    if order == "run":
        return [list(range(i * group, (i + 1) * group)) for i in range(parts)]
    if order == "pairs":
        return [[at for at in range(k) if at // 2 % parts == i] for i in range(parts)]
    return [list(range(i, k, parts)) for i in range(parts)]


@dataclass(frozen=True)
class Parts:
    """Numbers: ``significand`` (0 or more, an integer of ``fraction`` bits after the point)
    times 2^``exponent``, the sign, and their value as a double."""

    significand: np.ndarray
    exponent: np.ndarray
    negative: np.ndarray
    value: np.ndarray


def decode(bits: np.ndarray, name: str) -> Parts:
    """The parts of numbers of a format of at most 32 bits."""
    form = FORMATS[name]
    words = bits.astype(np.int64) >> form.shift
    fraction = words & ((1 << form.fraction) - 1)
    field = words >> form.fraction & ((1 << form.exponent) - 1)
    negative = (words >> (form.fraction + form.exponent) & 1).astype(bool)
    significand = np.where(field > 0, fraction | 1 << form.fraction, fraction)
    exponent = np.maximum(field, 1) - 1 + form.least
    value = np.ldexp(significand.astype(np.float64), (exponent - form.fraction).astype(np.int32))
    top = field == (1 << form.exponent) - 1
    if form.finite:
        value[top & (fraction == (1 << form.fraction) - 1)] = np.nan
    else:
        value[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    return Parts(significand, exponent, negative, np.where(negative, -value, value))


def rounded(value: np.ndarray, bits: int, name: str, result: str, overflow: str) -> np.ndarray:
    """Doubles rounded to ``bits`` of fraction with the exponents of a format."""
    form = FORMATS[name]
    _, exponent = np.frexp(value)
    place = (np.maximum(exponent - 1, form.least) - bits).astype(np.int32)
    scaled = np.ldexp(value, -place)
    whole = np.trunc(scaled) if result == "zero" else np.rint(scaled)
    found = np.ldexp(whole, place)
    beyond = np.abs(found) >= 2.0 ** (form.greatest + 1)
    most = np.inf if overflow == "infinity" else 2.0**form.greatest * (2 - 2.0**-bits)
    return np.where(beyond, np.copysign(most, value), found)


def encode(value: np.ndarray, name: str) -> np.ndarray:
    """The bits of doubles that a format of an accumulator can represent; NaN is all ones."""
    if name == "f64":
        return value.view(np.uint64)
    with np.errstate(over="ignore", invalid="ignore"):
        bits = value.astype(np.float32 if name == "f32" else np.float16)
    found = bits.view(np.uint32 if name == "f32" else np.uint16).copy()
    found[np.isnan(value)] = 0x7FFFFFFF if name == "f32" else 0x7FFF
    return found


def _shifted(significand: np.ndarray, shift: np.ndarray, cut: str) -> np.ndarray:
    """Signed significands times 2^shift, cut off."""
    left = significand << np.clip(shift, 0, 38)
    right = np.clip(-shift, 0, 62)
    if cut == "floor":
        return np.where(shift >= 0, left, significand >> right)
    return np.where(shift >= 0, left, np.sign(significand) * (np.abs(significand) >> right))


_NOWHERE = -100_000


@dataclass(frozen=True)
class Operands:
    """``a`` and ``b`` (outputs x K) and ``c`` (outputs) as bits; ``types`` are those of a, b, c."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    types: tuple[str, str, str]

    def __len__(self) -> int:
        return len(self.c)

    def at(self, which: np.ndarray | slice) -> Operands:
        return Operands(self.a[which], self.b[which], self.c[which], self.types)

    @cached_property
    def parts(self) -> tuple[Parts, Parts, Parts]:
        a, b, c = (
            decode(x, name) for x, name in zip((self.a, self.b, self.c), self.types, strict=True)
        )
        return a, b, c

    @cached_property
    def products(self) -> _Products:
        """The products, without what a rule has to say of them."""
        a, b, _ = self.parts
        product = a.significand * b.significand
        with np.errstate(invalid="ignore", over="ignore"):
            value = a.value * b.value
        return _Products(
            np.where(a.negative ^ b.negative, -product, product),
            a.exponent + b.exponent,
            value,
            FORMATS[self.types[0]].fraction + FORMATS[self.types[1]].fraction,
            np.where(product == 0, _NOWHERE, a.exponent + b.exponent),
        )


@dataclass(frozen=True)
class _Products:
    """Significands (with their signs) of ``point`` bits of fraction, times 2^``exponent``;
    ``chosen``: what each counts as where the largest exponent is chosen."""

    significand: np.ndarray
    exponent: np.ndarray
    value: np.ndarray
    point: int
    chosen: np.ndarray


def _exponents_in_f16(parts: Parts) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        exponent = np.frexp(parts.value)[1] - 1
    normal = np.isfinite(parts.value) & (parts.value != 0)
    return np.where(normal, np.maximum(exponent, FORMATS["f16"].least), parts.exponent)


def _products(operands: Operands, rule: Rule) -> _Products:
    found = operands.products
    value, chosen = found.value, found.chosen
    if rule.exponents == "normalized":
        place = np.frexp(found.significand)[1] - 1 - found.point
        chosen = np.where(found.significand == 0, _NOWHERE, place + found.exponent)
    if rule.exponents == "f16":
        left, right = (_exponents_in_f16(x) for x in operands.parts[:2])
        chosen = np.where(found.significand == 0, _NOWHERE, left + right)
    if rule.zeros == "counted":
        chosen = np.where(found.significand == 0, found.exponent, chosen)
    if rule.products == "bounded":
        value = np.where(np.abs(value) >= 2.0**128, np.copysign(np.inf, value), value)
    return replace(found, value=value, chosen=chosen)


def _add(terms: _Products, at: list[int], acc: np.ndarray, name: str, rule: Rule) -> np.ndarray:
    """One group: ``acc`` plus the products ``at``."""
    form = FORMATS[name]
    value = terms.value[:, at]
    with np.errstate(invalid="ignore"):
        naive = value.sum(axis=1) + acc
    _, exponent = np.frexp(acc)
    of_acc = np.where(acc == 0, form.least, np.maximum(exponent - 1, form.least)).astype(np.int64)
    finite = np.where(np.isfinite(acc), acc, 0.0)
    whole = np.ldexp(finite, (form.fraction - of_acc).astype(np.int32)).astype(np.int64)
    chosen = np.where((acc == 0) & (rule.start == "ignored"), _NOWHERE, of_acc)
    largest = terms.chosen[:, at].max(axis=1)
    if rule.accumulator != "late":
        largest = np.maximum(largest, chosen)
    largest = np.maximum(largest, -2_000 if rule.least is None else rule.least)
    shift = rule.fraction - terms.point + terms.exponent[:, at] - largest[:, None]
    total = _shifted(terms.significand[:, at], shift, rule.cut).sum(axis=1)
    if rule.accumulator != "late":
        total = total + _shifted(whole, rule.fraction - form.fraction + of_acc - largest, rule.cut)
    place = np.maximum(largest - rule.fraction, -1070).astype(np.int32)
    exact = np.ldexp(total.astype(np.float64), place)
    if rule.accumulator == "late":
        exact = _late(exact, whole, of_acc, form.fraction, rule)
    found = rounded(exact, rule.bits, name, rule.result, rule.overflow)
    zero = found == 0
    if rule.signs == "positive":
        found = np.where(zero, 0.0, found)
    elif rule.signs == "ieee":
        same = (np.signbit(value).all(axis=1) & np.signbit(acc)) & (exact == 0) & (naive == 0)
        found = np.where(same, -0.0, found)
    return np.where(np.isfinite(naive), found, naive)


def _late(
    exact: np.ndarray, whole: np.ndarray, of_acc: np.ndarray, point: int, rule: Rule
) -> np.ndarray:
    """The accumulator, added to a normalized sum of products in an alignment of its own."""
    _, exponent = np.frexp(exact)
    of_sum = np.where(exact == 0, _NOWHERE, exponent - 1)
    largest = np.maximum(of_sum, np.where(whole == 0, _NOWHERE, of_acc))
    largest = np.where(largest == _NOWHERE, 0, largest)
    cut = np.trunc if rule.cut == "zero" else np.floor
    place = np.clip(rule.fraction - largest, -1000, 1000).astype(np.int32)
    acc = np.ldexp(whole.astype(np.float64), np.clip(of_acc - point, -1000, 1000).astype(np.int32))
    return np.ldexp(cut(np.ldexp(exact, place)) + cut(np.ldexp(acc, place)), -place)


def evaluate(operands: Operands, k: int, rule: Candidate) -> np.ndarray:
    """The accumulators' bits after a chain of instructions of ``k`` products."""
    if isinstance(rule, Sequential):
        return _sequential(operands.a, operands.b, operands.c, rule)
    terms, name = _products(operands, rule), operands.types[2]
    acc = operands.parts[2].value
    for first in range(0, operands.a.shape[1], k):
        before, partial = acc, acc
        if rule.accumulator == "added":
            partial = np.zeros_like(acc)
        for at in steps_of(k, rule.group, rule.order):
            partial = _add(terms, [first + i for i in at], partial, name, rule)
        acc = _added(before, partial, name) if rule.accumulator == "added" else partial
    return encode(acc, name)


def _added(left: np.ndarray, right: np.ndarray, name: str) -> np.ndarray:
    """The sum of two accumulators, rounded to nearest."""
    kind = np.float32 if name == "f32" else np.float16
    with np.errstate(over="ignore", invalid="ignore"):
        return (left.astype(kind) + right.astype(kind)).astype(np.float64)


@cache
def _library() -> ctypes.CDLL:
    found = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
    found.fma.restype = ctypes.c_double
    found.fma.argtypes = [ctypes.c_double] * 3
    return found


def _sequential(a: np.ndarray, b: np.ndarray, c: np.ndarray, rule: Sequential) -> np.ndarray:
    fma = _library().fma
    left, right = a.view(np.float64), b.view(np.float64)
    acc = c.view(np.float64).copy()
    steps = range(a.shape[1]) if rule.order == "up" else reversed(range(a.shape[1]))
    for at in steps:
        x, y = left[:, at], right[:, at]
        if rule.step == "fma":
            acc = np.array([fma(*each) for each in zip(x, y, acc, strict=True)])
        else:
            with np.errstate(all="ignore"):
                acc = x * y + acc
    return acc.view(np.uint64)
