"""The host's models of the conversions, over every f16 and bf16, and f32 that round every way."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pytest
from functions import with_functions

from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface, Param
from gemmgen.numerics import formats
from gemmgen.numerics.operators import FROM_BITS, TO_BITS
from gemmgen.sim.run import CompiledKernel, compile_kernel
from gemmgen.sim.unit import BEGIN, END

HALVES: tuple[DType, ...] = ("f16", "bf16")
EVERY = np.arange(1 << 16).astype(np.uint16)
Floats = npt.NDArray[np.float32]


@functools.cache
def converter(call: str, source: DType, target: DType) -> CompiledKernel:
    """A kernel that applies ``call`` to each of N elements."""
    a = Param("A", "tensor", ("n",), dtype=source)
    c = Param("C", "tensor", ("n",), written=True, read=False, dtype=target)
    block, tiles = (32, 1), (("N", 32),)
    interface = Interface("apply", (Param("N", "extent"), a, c), block, tiles, (), 0, 0, ())
    types = {"f32": "float", "f16": "unsigned short", "bf16": "unsigned short"}
    text = f"""{BEGIN}
extern "C" __global__ void __launch_bounds__(32)
apply(int N, const {types[source]} *__restrict__ A, {types[target]} *__restrict__ C)
{{
    const int n = blockIdx.x * 32 + threadIdx.x;
    if (n < N) C[n] = {call}(A[n]);
}}
{END}
"""
    return compile_kernel(with_functions(text), interface)


def widened(dtype: DType, bits: npt.NDArray[np.uint16]) -> Floats:
    got = np.zeros(bits.size, np.float32)
    given = bits.view(formats.STORAGE[dtype])
    converter(f"gg_from_{dtype}", dtype, "f32").run({"N": bits.size, "A": given, "C": got})
    return got


def narrowed(dtype: DType, values: Floats) -> npt.NDArray[np.uint16]:
    got = np.zeros(values.size, formats.STORAGE[dtype])
    converter(f"gg_to_{dtype}", "f32", dtype).run({"N": values.size, "A": values, "C": got})
    return got.view(np.uint16)


def exactly(dtype: DType, bits: int) -> float:
    """The value of 16 bits, by the definition of the format."""
    fraction, bias = (10, 15) if dtype == "f16" else (7, 127)
    sign = -1.0 if bits >> 15 else 1.0
    exponent, rest = bits >> fraction & ((1 << 15 - fraction) - 1), bits & ((1 << fraction) - 1)
    if exponent == (1 << 15 - fraction) - 1:
        return sign * float("inf") if rest == 0 else float("nan")
    if exponent == 0:
        return sign * rest * 2.0 ** (1 - bias - fraction)
    return sign * (1 + rest * 2.0**-fraction) * 2.0 ** (exponent - bias)


def same(one: Floats, other: Floats) -> bool:
    """Bit for bit, but that any NaN is as good as another."""
    nan = np.isnan(one) & np.isnan(other)
    return bool((nan | (one.view(np.uint32) == other.view(np.uint32))).all())


@pytest.mark.parametrize("dtype", HALVES)
def test_every_bit_pattern_is_the_number_of_the_format(dtype: DType) -> None:
    want = np.array([exactly(dtype, bits) for bits in range(1 << 16)]).astype(np.float32)
    got = widened(dtype, EVERY)
    assert same(got, want)
    assert same(formats.numbers(EVERY.view(formats.STORAGE[dtype]), dtype), want)
    assert same(np.asarray(FROM_BITS[f"from_{dtype}"](EVERY)), want)


@pytest.mark.parametrize("dtype", HALVES)
def test_every_number_goes_there_and_back(dtype: DType) -> None:
    numbers = widened(dtype, EVERY)
    back = narrowed(dtype, numbers)
    nan = np.isnan(numbers)
    assert (back[~nan] == EVERY[~nan]).all()
    assert (back[nan] == 0x7FFF).all(), "every NaN becomes NVIDIA's one"


@functools.cache
def awkward(dtype: DType) -> Floats:
    """Each number that ``dtype`` holds, its neighbours in f32, the middles between it and the next
    one with theirs, and any bits at all."""
    held = widened(dtype, EVERY[:0x8000])
    held = held[np.isfinite(held)].astype(np.float64)
    middles = ((held[1:] + held[:-1]) / 2).astype(np.float32)
    last = np.float32(held[-1] + (held[-1] - held[-2]) / 2)  # from here on, infinity
    near = np.concatenate((held.astype(np.float32), middles, [last]))
    up, down = np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(0))
    rng = np.random.default_rng(1)
    anything = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)
    every = np.concatenate((near, up, down, [np.float32(np.inf)], anything.view(np.float32)))
    return np.concatenate((every, -every))


def test_f16_rounds_as_numpy_does() -> None:
    values = awkward("f16")
    with np.errstate(all="ignore"):
        want = values.astype(np.float16)
    got = narrowed("f16", values)
    nan = np.isnan(values)
    assert (got[~nan] == want.view(np.uint16)[~nan]).all()
    assert (got[nan] == 0x7FFF).all()


def nearest_bf16(values: Floats) -> npt.NDArray[np.uint16]:
    """By distance: of the two neighbours the nearer one, of equals the even one."""
    below = values.view(np.uint32) >> 16
    low = (below << 16).astype(np.uint32).view(np.float32).astype(np.float64)
    top = ((below + 1) << 16).astype(np.uint32).view(np.float32).astype(np.float64)
    largest = below & 0x7FFF == 0x7F7F
    top = np.where(largest, 2 * low - (low * (1 - 2.0**-8)), top)
    high = np.where(largest, np.copysign(2.0**128, low), top)
    wide = values.astype(np.float64)
    left, right = np.abs(wide - low), np.abs(high - wide)
    up = (right < left) | ((right == left) & (below & 1 == 1))
    return np.where(up, below + 1, below).astype(np.uint16)


def test_bf16_rounds_to_the_nearest_of_its_neighbours() -> None:
    values = awkward("bf16")
    finite = values[np.isfinite(values)]
    assert (narrowed("bf16", finite) == nearest_bf16(finite)).all()
    special = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0], np.float32)
    assert narrowed("bf16", special).tolist() == [0x7F80, 0xFF80, 0x7FFF, 0x7FFF, 0, 0x8000]


@pytest.mark.parametrize("dtype", HALVES)
def test_the_models_agree(dtype: DType) -> None:
    """The host's, the interpreter's and the references' are one."""
    values = awkward(dtype)
    values = values[~np.isnan(values)]
    want = narrowed(dtype, values)
    with np.errstate(all="ignore"):
        assert (formats.bits(formats.stored(values, dtype)) == want).all()
        assert (np.asarray(TO_BITS[f"to_{dtype}"](values)) == want).all()


def test_f64_is_rounded_to_bf16_once() -> None:
    """By way of f32 1 + 2^-8 + 2^-40 would become a tie, and go the other way."""
    values = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40])
    assert formats.bits(formats.stored(values, "bf16")).tolist() == [0x3F81, 0x3F80, 0x3F80]
    assert formats.bits(formats.stored(-values, "bf16")).tolist() == [0xBF81, 0xBF80, 0xBF80]


@pytest.mark.parametrize("dtype", ("f32", "f64", "f16", "bf16"))
def test_poison_is_known_and_is_no_number(dtype: DType) -> None:
    poison = formats.poison(70_000, dtype)
    assert formats.is_poison(poison, dtype).all() and formats.is_nan(poison, dtype).all()
    assert len(np.unique(formats.bits(poison))) > 30
    ones = formats.stored(np.linspace(-2, 2, 99), dtype)
    nan = formats.stored(np.full(3, np.nan), dtype)
    for values in (ones, nan):
        assert not formats.is_poison(values, dtype).any()
    assert formats.is_nan(nan, dtype).all() and not formats.is_nan(ones, dtype).any()
