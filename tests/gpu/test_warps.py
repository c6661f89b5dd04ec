"""What a warp does together: each function on the GPU against its model on the CPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from functions import with_functions

from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_core_rules import RULES
from gemmgen.numerics.formats import F32, Stored, held, stored
from gemmgen.sim.run import compile_kernel
from gemmgen.sim.unit import BEGIN, END

from .wmma import Variant, interface

cp = pytest.importorskip("cupy")

VARIANTS = tuple(
    Variant(a, b, c, dtype)
    for dtype in ("f16", "bf16")
    for a, b, c in itertools.product(("row", "col"), repeat=3)
)


def sides(variant: Variant, a: F32, b: F32) -> tuple[Stored, Stored]:
    """A and the transpose of B as elements."""
    return stored(a, variant.dtype), stored(b.T.copy(), variant.dtype)


def target() -> str:
    """The GPU's architecture."""
    return f"sm_{cp.cuda.Device().compute_capability}"


def on_cpu(variant: Variant, a: F32, b: F32) -> F32:
    left, right = sides(variant, a, b)
    out = np.zeros((16, 16), np.float32)
    numbers = {"K": a.shape[1], "M": 16, "N": 16, "ldc": 16}
    kernel = compile_kernel(variant.text(), interface(variant.dtype, target()))
    kernel.run({**numbers, "A": left, "B": right, "C": out})
    return out


def on_gpu(variant: Variant, a: F32, b: F32) -> F32:
    left, right = (cp.asarray(side) for side in sides(variant, a, b))
    out = cp.zeros((16, 16), "float32")
    module = cp.RawModule(code=variant.text(), options=("--std=c++17",))
    numbers = (np.int32(a.shape[1]), np.int32(16), np.int32(16))
    module.get_function("wmma")((1,), (32,), (*numbers, left, right, out, np.int32(16)))
    return out.get()


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_wmma_is_its_model(variant: Variant) -> None:
    rng = np.random.default_rng(7)
    for k in (16, 48, 64):
        a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((16, k), (k, 16)))
        got, model = on_gpu(variant, a, b), on_cpu(variant, a, b)
        assert np.array_equal(got, model) and np.array_equal(model, a @ b)

        a, b = (held(rng.standard_normal(x.shape), variant.dtype) for x in (a, b))
        got, model = on_gpu(variant, a, b), on_cpu(variant, a, b)
        if RULES[target()]["halves"].measured:
            assert np.array_equal(got, model)
        bound = 2 * k * 2.0**-23 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
        assert (np.abs(got.astype(np.float64) - model) <= bound).all()
        exact = a.astype(np.float64) @ b.astype(np.float64)
        assert (np.abs(got - exact) <= bound).all() and (np.abs(model - exact) <= bound).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_what_is_not_finite_goes_the_same_way(dtype: str) -> None:
    variant = next(v for v in VARIANTS if v.dtype == dtype)
    rng = np.random.default_rng(8)
    a, b = (rng.integers(1, 4, shape).astype(np.float32) for shape in ((16, 32), (32, 16)))
    a[3, 17], a[5, 2], a[9, 30], b[20, 9], b[2, 4] = np.nan, np.inf, -np.inf, np.inf, 0
    got, model = on_gpu(variant, a, b), on_cpu(variant, a, b)
    assert np.array_equal(got, model, equal_nan=True)
    assert np.isnan(got[3]).all() and np.isnan(got[5, 4]) and got[5, 0] == np.inf


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_subnormal_operands_count(dtype: str) -> None:
    variant = next(v for v in VARIANTS if v.dtype == dtype)
    least = 2.0**-24 if dtype == "f16" else 2.0**-133
    a, b = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    a[:, 0] = least * np.arange(1, 17)
    b[0] = 2.0**15 if dtype == "f16" else 2.0**120
    got, model = on_gpu(variant, a, b), on_cpu(variant, a, b)
    assert np.array_equal(got, model) and (got != 0).all()


SHUFFLES = """\
extern "C" __global__ void shuffles(int N, int X, const float *A, float *C)
{
    const int n = threadIdx.x;
    if (N < 0 || X < 0) C[n] = A[n];
    double sum = static_cast<double>(A[n]);
    for (int mask = 16; mask > 0; mask /= 2) sum += gg_shuffle_xor(sum, mask);
    for (int delta = 0; delta < 32; ++delta) {
        C[n * 67 + 2 * delta] = gg_shuffle_xor(A[n], delta);
        C[n * 67 + 2 * delta + 1] = gg_shuffle_down(A[n], delta);
    }
    C[n * 67 + 64] = static_cast<float>(gg_shuffle_down(sum + n, 7));
    C[n * 67 + 65] = static_cast<float>(sum);
    C[n * 67 + 66] = gg_shuffle_xor(A[n], 33);
}"""


def test_shuffles_are_their_models() -> None:
    given = np.random.default_rng(9).standard_normal(64).astype(np.float32)
    extents, given_ = (Param("N", "extent"), Param("X", "extent")), Param("A", "tensor", ("n",))
    params = (*extents, given_, Param("C", "tensor", ("x",), written=True))
    interface = Interface("shuffles", params, (64, 1), (), (), 0, 0, ())
    model = np.zeros(64 * 67, np.float32)
    kernel = compile_kernel(with_functions("\n".join((BEGIN, SHUFFLES, END))), interface)
    kernel.run({"N": 64, "X": model.size, "A": given, "C": model})
    module = cp.RawModule(code=with_functions(SHUFFLES), options=("--std=c++17",))
    found = cp.zeros(model.size, "float32")
    order = (np.int32(64), np.int32(model.size), cp.asarray(given), found)
    module.get_function("shuffles")((1,), (64,), order)
    assert np.array_equal(found.get(), model)
