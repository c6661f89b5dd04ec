"""The model of WMMA multiplies, and finds what the hardware would not do."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from gpu.wmma import Variant, interface

from gemmgen.calling.launches import ORDERS
from gemmgen.ir.dtypes import DType
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.numerics.formats import F32, held, stored
from gemmgen.numerics.reference import compare
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import compile_kernel

VARIANTS = tuple(
    Variant(a, b, c, dtype)
    for dtype in ("f16", "bf16")
    for a, b, c in product(("row", "col"), repeat=3)
)
PLAIN = VARIANTS[0]


def run(variant: Variant, a: F32, b: F32, c: F32, order: str = "ascending", text: str = "") -> F32:
    """C + A * B by the kernel; A is m x k and B is k x n."""
    kernel = compile_kernel(text or variant.text(), interface(variant.dtype), checked=True)
    out = c.copy()
    sides = {"A": stored(a, variant.dtype), "B": stored(b.T.copy(), variant.dtype)}
    numbers = {"K": a.shape[1], "M": 16, "N": 16, "ldc": 16}
    kernel.run({**sides, **numbers, "C": out}, order=order, seed=5)
    return out


def drawn(k: int, dtype: DType) -> tuple[F32, F32, F32]:
    rng = np.random.default_rng(k)
    a, b = (held(rng.standard_normal(shape), dtype) for shape in ((16, k), (k, 16)))
    return a.astype(np.float32), b.astype(np.float32), np.zeros((16, 16), np.float32)


@pytest.mark.by_default("*a='row', b='col', c='row', dtype='f16'*")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_adds_products_as_tensor_cores(variant: Variant) -> None:
    a, b, c = drawn(48, variant.dtype)
    rule = rule_of("sm_80", "wmma", variant.dtype)
    assert rule is not None
    want = TensorCoreAdditions(rule, 16, variant.dtype, variant.dtype).accumulate(a, b)
    for order in ORDERS:
        assert compare(run(variant, a, b, c, order), want).equal


@pytest.mark.by_default("bf16")
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_converts_every_kind_of_number(dtype: DType) -> None:
    variant = next(v for v in VARIANTS if v.dtype == dtype)
    least = 2.0**-24 if dtype == "f16" else 2.0**-133
    most = 65504.0 if dtype == "f16" else 3.3895314e38
    values = [0.0, -0.0, 1.0, -2.5, least, -3 * least, 2.0**-14, most, -most, np.inf, -np.inf]
    a = np.zeros((16, 16), np.float32)
    a[: len(values), 0] = values
    a[len(values), 0] = np.nan
    b = np.zeros((16, 16), np.float32)
    b[0] = 1.0
    got = run(variant, a, b, np.full((16, 16), -0.0, np.float32))
    assert compare(got[:, 3], np.float32(0) + a[:, 0]).equal


def test_nan_and_infinity_stay_in_their_rows_and_columns() -> None:
    a, b, c = drawn(32, "f16")
    a[3, 17], b[20, 9] = np.nan, np.inf
    got = run(PLAIN, a, b, c)
    assert np.isnan(got[3]).all()
    others = np.delete(got, 3, 0)
    assert np.isinf(others[:, 9]).all() and np.isfinite(np.delete(others, 9, 1)).all()


PLANTS = {
    "a fragment begins at no multiple of 32 bytes": (
        "A_shared[0][0] + k,",
        "A_shared[0][0] + 8 + k,",
        "misaligned: a fragment begins 16 bytes after a multiple of 32",
    ),
    "lines at no multiple of 16 bytes": (
        "acc, 20)",
        "acc, 18)",
        "misaligned: a fragment's lines are 72 bytes apart, no multiple of 16",
    ),
    "the wrong leading dimension": (
        "A_shared[0][0] + k, DEPTH + 8)",
        "A_shared[0][0] + k, DEPTH + 16)",
        "never written|out of bounds",
    ),
    "no barrier before the sums are read": ("__syncwarp();", "", "race: .* sums"),
    "no barrier before the fragments are loaded": ("__syncthreads();", "", "race: .* A_shared"),
    "some lanes alone": (
        "        gg_wmma_load_a",
        "        if (lane < 8) gg_wmma_load_a",
        r"divergent warp in block 0: thread \(0, 0\) waits for its warp",
    ),
    "lanes that load different fragments": (
        "A_shared[0][0] + k,",
        "A_shared[0][0] + k + lane / 31 * 16,",
        r"thread \(31, 0\) of block 0 names another fragment than its warp",
    ),
    "a multiplication by some lanes": (
        "        gg_wmma_multiply",
        "        if (lane < 8) gg_wmma_multiply",
        r"divergent warp in block 0: thread \(0, 0\) waits for its warp",
    ),
}


@pytest.mark.by_default("some lanes alone", "lines at no multiple of 16 bytes")
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    old, new, message = PLANTS[name]
    text = PLAIN.text()
    assert old in text
    a, b, c = drawn(32, "f16")
    for order in ORDERS:
        with pytest.raises(KernelFault, match=message):
            run(PLAIN, a, b, c, order, text.replace(old, new))
