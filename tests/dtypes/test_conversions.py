"""The host's models of the conversions, over every f16 and bf16, and f32 that round every way."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pytest
from functions import with_functions

from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics import formats
from gemmgen.numerics.operators import FROM_BITS, TO_BITS, TO_INTEGERS, mad
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
    types = {"f32": "float", "f16": "unsigned short", "bf16": "unsigned short", "i8": "signed char"}
    types |= dict.fromkeys(("e4m3", "e5m2"), "unsigned char")
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


def test_i8_saturates_as_the_instruction_does() -> None:
    """Ties go to even; a NaN is 0."""
    given = [
        -1e30,
        -128.5,
        -128.0,
        -2.5,
        -0.5,
        0.5,
        1.5,
        126.5,
        127.4,
        127.5,
        128.0,
        np.inf,
        np.nan,
    ]
    values = np.array([*given, *np.linspace(-140, 140, 8191)], np.float32)
    got = np.zeros(values.size, np.int8)
    converter("gg_to_i8", "f32", "i8").run({"N": values.size, "A": values, "C": got})
    want = [-128, -128, -128, -2, 0, 0, 2, 126, 127, 127, 127, 127, 0]
    assert got[: len(want)].tolist() == want
    assert (formats.stored(values, "i8") == got).all()
    assert (np.asarray(TO_INTEGERS["to_i8"](values)) == got).all()


def test_poison_stays_poison_as_an_integer() -> None:
    found = np.asarray(TO_INTEGERS["to_i8"](formats.poison(5, "f32")))
    assert np.isnan(found).all()


def test_a_number_that_all_lanes_have_is_converted_to_one() -> None:
    """C1 keeps what no lane's index is in as one number, and not as an array of one."""
    for convert in (*TO_BITS.values(), *TO_INTEGERS.values()):
        assert np.shape(convert(np.float32(1))) == ()
    for convert in FROM_BITS.values():
        assert np.shape(convert(np.int64(1))) == ()


@pytest.mark.parametrize("largest", (1 << 7, 1 << 20, 1 << 31))
def test_multiply_adds_of_integers_wrap(largest: int) -> None:
    """The references' and the interpreter's, against NumPy's integers; poison stays."""
    a, b, c = np.random.default_rng(1).integers(-largest, largest, (3, 5000))
    want = (a * b + c).astype(np.int32)  # modulo 2^64, and then 2^32
    given = (x.astype(np.float64) for x in (a, b, c))
    assert (np.asarray(mad(*given)).astype(np.int32) == want).all()
    nan = np.asarray(mad(np.array([1.0, np.nan]), np.array([np.nan, 2.0]), np.array([3.0, 4.0])))
    assert np.isnan(nan).all()


BYTES: tuple[DType, ...] = ("e4m3", "e5m2")


def byte_exactly(dtype: DType, bits: int) -> float:
    """The value of a byte, by the definition of the format (OCP 8-bit floating point, 1.0)."""
    fraction, bias = (3, 7) if dtype == "e4m3" else (2, 15)
    sign, exponent = -1.0 if bits >> 7 else 1.0, bits >> fraction & ((1 << 7 - fraction) - 1)
    rest = bits & ((1 << fraction) - 1)
    if dtype == "e4m3" and bits & 0x7F == 0x7F:
        return float("nan")
    if dtype == "e5m2" and exponent == 31:
        return sign * float("inf") if rest == 0 else float("nan")
    if exponent == 0:
        return sign * rest * 2.0 ** (1 - bias - fraction)
    return sign * (1 + rest * 2.0**-fraction) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("dtype", BYTES)
def test_every_byte_is_the_number_of_the_format(dtype: DType) -> None:
    every = np.arange(256).astype(np.uint8)
    want = np.array([byte_exactly(dtype, bits) for bits in range(256)]).astype(np.float32)
    got = np.zeros(256, np.float32)
    converter(f"gg_from_{dtype}", dtype, "f32").run({"N": 256, "A": every, "C": got})
    assert same(got, want)
    assert same(formats.numbers(every, dtype), want)
    assert same(np.asarray(FROM_BITS[f"from_{dtype}"](every)), want)


def nearest_byte(dtype: DType, value: float) -> int:
    """By distance among all finite numbers; of two the even one.  A NaN is 0x7f."""
    if np.isnan(value):
        return 0x7F
    finite = [b for b in range(128) if np.isfinite(byte_exactly(dtype, b))]
    most = byte_exactly(dtype, finite[-1])
    size = min(abs(value), most)
    best = min(finite, key=lambda b: (abs(byte_exactly(dtype, b) - size), b & 1))
    return best | (0x80 if np.signbit(value) else 0)


@pytest.mark.proof
@pytest.mark.parametrize("dtype", BYTES)
def test_fp8_round_and_saturate_as_the_instruction_does(dtype: DType) -> None:
    """Each number, the middles between it and the next one, and their neighbors in f32."""
    held = np.array([byte_exactly(dtype, b) for b in range(128)], np.float64)
    held = held[np.isfinite(held)]
    near = np.concatenate((held, (held[1:] + held[:-1]) / 2, [held[-1] * 1.03, 1e30, np.inf]))
    near = near.astype(np.float32)
    up, down = np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(0))
    values = np.concatenate((near, up, down, -near, -up, -down, np.array([np.nan], np.float32)))
    want = np.array([nearest_byte(dtype, float(v)) for v in values]).astype(np.uint8)
    got = np.zeros(values.size, np.uint8)
    converter(f"gg_to_{dtype}", "f32", dtype).run({"N": values.size, "A": values, "C": got})
    assert (got == want).all()
    assert (formats.stored(values, dtype) == want).all()
    assert (formats.stored(values.astype(np.float64), dtype) == want).all()
    assert (np.asarray(TO_BITS[f"to_{dtype}"](values)) == want).all()


@pytest.mark.parametrize("dtype", BYTES)
def test_fp8_are_those_of_ml_dtypes(dtype: DType) -> None:
    """Within the range: beyond it ml_dtypes gives NaN or infinity, and the instruction neither."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    other = np.dtype(getattr(ml_dtypes, formats.NAMES[dtype]))
    every = np.arange(256).astype(np.uint8)
    assert same(formats.numbers(every, dtype), every.view(other).astype(np.float32))
    most = formats.GREATEST[dtype][1]
    values = np.random.default_rng(3).normal(0, most / 3, 100_000).astype(np.float32)
    values = np.concatenate((values[np.abs(values) <= most], values / 2.0**18))
    assert (formats.stored(values, dtype) == values.astype(other).view(np.uint8)).all()


@pytest.mark.parametrize("dtype", BYTES)
def test_poison_of_a_byte_is_no_number_and_no_result(dtype: DType) -> None:
    poison = formats.poison(300, dtype)
    assert formats.is_poison(poison, dtype).all() and formats.is_nan(poison, dtype).all()
    results = formats.stored(np.array([np.nan, -np.nan, np.inf, 1.0, -1e9]), dtype)
    assert not formats.is_poison(results, dtype).any()
