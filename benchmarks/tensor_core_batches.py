"""Operands that show how a tensor core adds: one function a category, each a batch of tiles.

A tile is a of m x K, b of n x K and c of m x n, as bits; see ``CATEGORIES``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tensor_core_kernels import Instruction
from tensor_core_model import FORMATS, encode

Tiles = tuple[np.ndarray, np.ndarray, np.ndarray]
OUTPUTS = 4096
CHAIN = 4096


@dataclass(frozen=True)
class Draw:
    """Random bits of one instruction's operands, ``tiles`` at a time."""

    what: Instruction
    rng: np.random.Generator
    tiles: int
    k: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        m, n = self.what.m, self.what.n
        return (self.tiles, m, self.k), (self.tiles, n, self.k), (self.tiles, m, n)

    def numbers(
        self, name: str, shape: tuple[int, ...], low: int | np.ndarray, high: int | np.ndarray
    ) -> np.ndarray:
        """Random signs and fractions, exponents from ``low`` up to ``high``."""
        fraction = self.rng.integers(0, 1 << FORMATS[name].fraction, shape, dtype=np.int64)
        exponent = self.rng.integers(low, np.maximum(low, high) + 1, shape)
        return self.bits(name, exponent, fraction)

    def powers(self, name: str, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
        exponent = self.rng.integers(low, high + 1, shape)
        return self.bits(name, exponent, np.zeros(shape, np.int64))

    def bits(self, name: str, exponent: np.ndarray, fraction: np.ndarray) -> np.ndarray:
        """Numbers of random sign; below the least exponent they are subnormal."""
        form = FORMATS[name]
        exponent = np.minimum(exponent, form.greatest)
        if form.finite:  # the greatest fraction of the greatest exponent is NaN
            fraction = np.where(exponent == form.greatest, fraction & ~1, fraction)
        whole = (fraction | 1 << form.fraction) >> np.clip(form.least - exponent, 0, 60)
        field = np.maximum(exponent - form.least + 1, 0)
        words = np.where(field > 0, field << form.fraction | fraction, whole)
        sign = self.rng.integers(0, 2, exponent.shape, dtype=np.int64)
        words |= sign << (form.fraction + form.exponent)
        if form.shift:  # what the instruction drops
            words = words << form.shift | self.rng.integers(0, 1 << form.shift, exponent.shape)
        return words.astype(form.word)

    @staticmethod
    def sign(name: str) -> np.ndarray:
        """The bit of the sign."""
        form = FORMATS[name]
        return np.array(1 << (form.shift + form.fraction + form.exponent), form.word)

    def zeroed(self, bits: np.ndarray, name: str, share: float) -> np.ndarray:
        """``share`` of the numbers are zeros, of their sign."""
        return np.where(self.rng.random(bits.shape) < share, bits & self.sign(name), bits)

    def special(self, bits: np.ndarray, name: str, share: float) -> np.ndarray:
        """``share`` of the numbers are infinities or NaN, half each."""
        form = FORMATS[name]
        top = ((1 << form.exponent) - 1) << form.fraction
        nan = (top | ((1 << form.fraction) - 1)) << form.shift
        infinity = nan if form.finite else top << form.shift
        chosen = self.rng.random(bits.shape)
        kept = bits & self.sign(name)
        found = np.where(chosen < share, kept | np.array(infinity, form.word), bits)
        return np.where(chosen < share * 0.4, kept | np.array(nan, form.word), found)

    def three(
        self,
        of_a: tuple[int, int],
        of_b: tuple[int, int],
        of_c: tuple[int, int],
        *,
        normal: bool = False,
    ) -> Tiles:
        """All operands with exponents in ranges; ``normal``: those of a and b not subnormal."""
        what, shapes = self.what, self.shapes
        if normal:
            of_a, of_b = self.normal(what.a, of_a), self.normal(what.b, of_b)
        return (
            self.numbers(what.a, shapes[0], *of_a),
            self.numbers(what.b, shapes[1], *of_b),
            self.numbers(what.acc, shapes[2], *of_c),
        )

    @staticmethod
    def normal(name: str, exponents: tuple[int, int]) -> tuple[int, int]:
        """A range without what is subnormal in a format."""
        least = FORMATS[name].least
        return max(exponents[0], least), max(exponents[1], least)

    @property
    def narrow(self) -> bool:
        """Accumulators of f16, which overflow from 2^16 on."""
        return self.what.acc == "f16"

    @property
    def wide_range(self) -> bool:
        """Products that f32 can't represent."""
        return self.what.a in ("bf16", "tf32")

    @property
    def kept(self) -> int:
        """About how many bits below the largest exponent are kept."""
        if self.what.via == "wgmma" and FORMATS[self.what.a].word == "u1":
            return 13
        return {"f16": 11, "f64": 53}.get(self.what.acc, 24)


def _integers(draw: Draw) -> Tiles:
    def of(name: str, shape: tuple[int, ...], most: int) -> np.ndarray:
        whole = draw.rng.integers(-most, most + 1, shape)
        magnitude = np.abs(whole)
        exponent = np.frexp(magnitude.astype(np.float64))[1] - 1
        form = FORMATS[name]
        if name == "f64":
            return whole.astype(np.float64).view(np.uint64)
        if name in ("f16", "f32"):
            return encode(whole.astype(np.float64), name)
        field = (exponent - form.least + 1) << form.fraction
        fraction = (magnitude << form.fraction >> np.maximum(exponent, 0)) & (
            (1 << form.fraction) - 1
        )
        words = np.where(whole == 0, 0, field | fraction)
        words |= (whole < 0).astype(np.int64) << (form.fraction + form.exponent)
        return (words << form.shift).astype(form.word)

    shapes = draw.shapes
    return (
        of(draw.what.a, shapes[0], 4),
        of(draw.what.b, shapes[1], 4),
        of(draw.what.acc, shapes[2], 100),
    )


def _near(draw: Draw) -> Tiles:
    return draw.three((-2, 2), (-2, 2), (-1, 6))


def _wide(draw: Draw) -> Tiles:
    if draw.narrow:
        return draw.three((-9, 3), (-9, 3), (-14, 9), normal=True)
    return draw.three((-14, 8), (-14, 8), (-30, 16), normal=True)


def _cancelling(draw: Draw) -> Tiles:
    """Each product but a few occurs with both signs, in random places."""
    low = -6 if draw.narrow else -10
    a, b, c = draw.three((low, 2), (low, 2), (-draw.kept - 4, 2), normal=True)
    half = draw.k // 2
    order = draw.rng.permutation(draw.k)
    form = FORMATS[draw.what.a]
    low_bit = draw.rng.integers(0, 2, (draw.tiles, draw.what.m, half)) << form.shift
    a[..., half:] = a[..., :half] ^ draw.sign(draw.what.a) ^ low_bit.astype(form.word)
    b[..., half:] = b[..., :half]
    if form.finite:
        a[(a & 0x7F) == 0x7F] ^= 1
    return a[..., order], b[..., order], c


def _deep(draw: Draw) -> Tiles:
    """Few products are large; others reach about as far below them as bits are kept."""
    bits = draw.kept
    low = -bits // 2
    a, b, c = draw.three((low - 3, low + 3), (low, low + 1), (-bits - 4, 1), normal=True)
    large = draw.rng.random(a.shape) < 1.5 / draw.k
    a = np.where(large, draw.numbers(draw.what.a, a.shape, 4, 5), a)
    if not draw.narrow:
        shape = draw.shapes[1]
        b = np.where(draw.rng.random(shape) < 0.1, draw.numbers(draw.what.b, shape, 2, 3), b)
    return a, b, c


def _hidden(draw: Draw) -> Tiles:
    """Two large products cancel; what is left reaches below the bits that they leave."""
    what = draw.what
    inside = 13 if draw.kept == 13 else 50 if what.a == "f64" else 25
    half = 7 if draw.narrow else 8
    low = half - inside // 2
    a, b, c = draw.three(
        (low - 2, low + 1), (low - 2, low + 1), (2 * low - 4, 2 * low + 4), normal=True
    )
    large = draw.numbers(what.a, (draw.tiles, what.m), half - 1, half)
    first, second = draw.rng.permutation(draw.k)[:2]
    a[..., first], a[..., second] = large, large ^ draw.sign(what.a)
    b[..., first] = draw.numbers(what.b, (draw.tiles, what.n), half - 1, half)
    b[..., second] = b[..., first]
    return a, b, draw.zeroed(c, what.acc, 0.5)


def _ties(draw: Draw) -> Tiles:
    """Powers of two about half a unit of the accumulator's last place."""
    what, shapes, bits = draw.what, draw.shapes, draw.kept
    a = draw.powers(what.a, shapes[0], *draw.normal(what.a, (-bits // 2 - 1, -bits // 2 + 1)))
    b = draw.powers(what.b, shapes[1], *draw.normal(what.b, (-bits // 2, -bits // 2 + 1)))
    return a, b, draw.numbers(what.acc, shapes[2], 0, 1)


def _sparse(draw: Draw) -> Tiles:
    """Many zeros: what do they align the others to? In every second tile zeros of a meet the
    largest numbers of b, and the other products are tiny."""
    what = draw.what
    top = 3 if draw.narrow else 12
    low = FORMATS[what.a].least
    a, b, c = draw.three((max(low, -30), top), (max(low, -30), top), (-40, 4))
    a, b = draw.zeroed(a, what.a, 0.7), draw.zeroed(b, what.b, 0.4)
    greatest = FORMATS[what.b].greatest
    columns = draw.rng.random(draw.k) < 0.4
    half = Draw(what, draw.rng, len(a[1::2]), draw.k)
    small_a, small_b, _ = half.three((low, low + 4), (low, low + 6), (0, 0))
    large = half.numbers(what.b, half.shapes[1], greatest - 3, greatest - 1)
    a[1::2] = np.where(columns, small_a & draw.sign(what.a), small_a)
    b[1::2] = np.where(columns, large, small_b)
    return a, b, draw.zeroed(c, what.acc, 0.5)


def _tiny(draw: Draw) -> Tiles:
    """Subnormal operands, products and accumulators."""
    what = draw.what
    if draw.wide_range or what.a == "f64":
        middle = FORMATS[what.acc].least // 2
        spread = 12 if draw.tiles % 2 else 16
        low, high = middle - spread, middle + 1
        a, b, c = draw.three((low, high), (low, high), (middle * 2 - 24, middle * 2 + 2))
    else:
        low = FORMATS[what.a].least - FORMATS[what.a].fraction
        high = low + (14 if draw.narrow else 8)
        a, b, c = draw.three((low, high), (low, high), (FORMATS[what.acc].least - 24, low))
    return a, b, draw.zeroed(c, what.acc, 0.5)


def _least(draw: Draw) -> Tiles:
    """Tiny powers of two: is there a least exponent to which products are aligned?"""
    what = draw.what
    low_a, low_b = (FORMATS[x].least - FORMATS[x].fraction for x in (what.a, what.b))
    if draw.wide_range:
        of_a, of_b, of_c = (-79, -69), (-87, -63), (-149, -135)
    elif what.a == "f64":
        of_a, of_b, of_c = (-560, -520), (-560, -510), (-1074, -1040)
    else:
        of_a, of_b, of_c = (low_a, low_a + 14), (low_b, low_b + 12), (-24, -14)
    a, b, c = (
        draw.powers(name, shape, *exponents)
        for name, shape, exponents in zip(
            (what.a, what.b, what.acc), draw.shapes, (of_a, of_b, of_c), strict=True
        )
    )
    if draw.narrow:  # sums are ties of f16's least numbers, or not, by products far below them
        least_a, least_b = FORMATS[what.a].least, FORMATS[what.b].least
        large = draw.rng.random(draw.k) < 0.4
        a = np.where(large, draw.powers(what.a, a.shape, least_a + 3, least_a + 6), a)
        a = np.where(large, a, draw.powers(what.a, a.shape, low_a, low_a + 1))
        b = np.where(large, draw.powers(what.b, b.shape, least_b, least_b), b)
        b = np.where(large, b, draw.powers(what.b, b.shape, low_b, low_b + 2))
        return draw.zeroed(a, what.a, 0.5), b, draw.zeroed(c, what.acc, 0.9)
    return draw.zeroed(a, what.a, 0.3), b, draw.zeroed(c, what.acc, 0.7)


def _vanishing(draw: Draw) -> Tiles:
    """Operands that are subnormal in their own format, some with large partners, and zeros."""
    what = draw.what
    low_a, low_b = (FORMATS[x].least - FORMATS[x].fraction for x in (what.a, what.b))
    top = 12 if draw.wide_range or what.a == "f64" else 4
    a = draw.numbers(what.a, draw.shapes[0], low_a, low_a + FORMATS[what.a].fraction + 1)
    b = draw.numbers(what.b, draw.shapes[1], -FORMATS[what.b].least - top, -FORMATS[what.b].least)
    if draw.narrow:
        b = draw.numbers(what.b, draw.shapes[1], low_b, 2)
    c = draw.numbers(what.acc, draw.shapes[2], -40, 2)
    return draw.zeroed(a, what.a, 0.3), draw.zeroed(b, what.b, 0.1), draw.zeroed(c, what.acc, 0.5)


def _huge(draw: Draw) -> Tiles:
    """Products and accumulators about the greatest number."""
    what = draw.what
    if draw.wide_range or what.a == "f64":
        half = FORMATS[what.acc].greatest // 2
        a, b, c = draw.three((half - 3, half), (half - 3, half + 1), (2 * half - 6, 2 * half + 1))
        return draw.zeroed(a, what.a, 0.5), b, draw.zeroed(c, what.acc, 0.3)
    top = FORMATS[what.a].greatest
    return draw.three((4, min(top, 8)), (4, min(top, 8)), (FORMATS[what.acc].greatest - 2,) * 2)


def _special(draw: Draw) -> Tiles:
    what = draw.what
    top = 3 if draw.narrow else 8
    a, b, c = draw.three((-6, top), (-6, top), (-8, 8))
    a, b = draw.zeroed(a, what.a, 0.05), draw.zeroed(b, what.b, 0.05)
    share = 0.4 / draw.k
    return (
        draw.special(a, what.a, share),
        draw.special(b, what.b, share),
        draw.special(c, what.acc, 0.05),
    )


def _signs(draw: Draw) -> Tiles:
    """Zeros of either sign, and negative sums that vanish where they are cut off."""
    what = draw.what
    a, b, c = _tiny(draw)
    a, b = draw.zeroed(a, what.a, 0.7), draw.zeroed(b, what.b, 0.5)
    minus = draw.rng.random((draw.tiles, 1, 1)) < 0.4  # whole tiles of one sign
    a = np.where(minus, a | draw.sign(what.a), a)
    b = np.where(minus, b & ~draw.sign(what.b), b)
    c = draw.zeroed(c, what.acc, 0.8)
    c = np.where(minus, c | draw.sign(what.acc), c)
    nothing = draw.rng.random((draw.tiles, 1, 1)) < 0.3
    return np.where(nothing, a & draw.sign(what.a), a), b, c


CATEGORIES: dict[str, Callable[[Draw], Tiles]] = {
    "integers": _integers,
    "near": _near,
    "wide": _wide,
    "cancelling": _cancelling,
    "deep": _deep,
    "hidden": _hidden,
    "ties": _ties,
    "sparse": _sparse,
    "tiny": _tiny,
    "least": _least,
    "vanishing": _vanishing,
    "huge": _huge,
    "special": _special,
    "signs": _signs,
    "chain": _near,
    "wide chain": _wide,
}
CORE = ("integers", "near", "wide", "cancelling", "deep", "hidden", "ties")
"""Without zeros, infinities and numbers close to a format's ends."""


def batch(what: Instruction, category: str, seed: int, outputs: int = OUTPUTS) -> Tiles:
    """Tiles of about as many outputs; chains have ``CHAIN`` products each and fewer tiles."""
    chain = CHAIN if category.endswith("chain") else 0
    if what.a == "f64":  # whose model is slow
        outputs, chain = outputs // 4, chain // 16
    tiles = max(1, outputs // (what.m * what.n) // (4 if chain else 1))
    rng = np.random.default_rng([seed, list(CATEGORIES).index(category)])
    return CATEGORIES[category](Draw(what, rng, tiles, chain or what.k))
