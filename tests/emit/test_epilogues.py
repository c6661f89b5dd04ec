"""Epilogues of every function and operator, run as emitted text and compared with NumPy in f64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from pipeline.running import call, emitted, met, operands, result_of

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.numerics.formats import F64
from gemmgen.pipeline import compile_source

Given = dict[str, F64]


def erf(x: F64) -> F64:
    return np.vectorize(math.erf, otypes=[float])(x)


def relu(x: F64) -> F64:
    return np.where(x < 0, 0, x)


def sigmoid(x: F64) -> F64:
    return 1 / (1 + np.exp(-x))


def rows(x: F64) -> F64:
    return np.arange(x.shape[0], dtype=float)[:, None]


def columns(x: F64) -> F64:
    return np.arange(x.shape[1], dtype=float)


EPILOGUES: dict[str, Callable[[F64, F64, Given], F64]] = {
    "relu(acc + bias[n])": lambda x, c, t: relu(x + t["bias"]),
    "gelu(acc) * scale": lambda x, c, t: x / 2 * (1 + erf(x / math.sqrt(2))) * t["scale"],
    "gelu_tanh(acc)": lambda x, c, t: (
        x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "silu(acc) * sigmoid(acc - 1)": lambda x, c, t: x * sigmoid(x) * sigmoid(x - 1),
    "min(max(acc, 0), 1) + clamp(acc, -1, 1)": lambda x, c, t: (
        np.minimum(np.maximum(x, 0), 1) + np.clip(x, -1, 1)
    ),
    "where(acc > 0, sqrt(acc), -sqrt(-acc))": lambda x, c, t: np.sign(x) * np.sqrt(abs(x)),
    "where(m < n and acc > 0 or m == 2, acc, 3)": lambda x, c, t: np.where(
        (rows(x) < columns(x)) & (x > 0) | (rows(x) == 2), x, 3
    ),
    "where(not (m < n), acc, 0 - acc)": lambda x, c, t: np.where(rows(x) < columns(x), -x, x),
    "acc * row[m] - bias[n] * acc": lambda x, c, t: x * t["row"] - t["bias"] * x,
    "relu(max(relu(acc), min(acc + 1, bias[n])))": lambda x, c, t: relu(
        np.maximum(relu(x), np.minimum(x + 1, t["bias"]))
    ),
    "alpha * acc + beta * C[m, n] + residual[n, m]": lambda x, c, t: (
        t["alpha"] * x + t["beta"] * c + t["residual"]
    ),
    "beta * C[m, n] * acc + C[m, n]": lambda x, c, t: t["beta"] * c * x + c,
    "round(acc * 4) / 4": lambda x, c, t: np.rint(x * 4) / 4,
    "abs(acc) - exp(-abs(acc)) - tanh(acc) + erf(acc)": lambda x, c, t: (
        abs(x) - np.exp(-abs(x)) - np.tanh(x) + erf(x)
    ),
    "-(acc - bias[n]) - (row[m] - acc)": lambda x, c, t: -(x - t["bias"]) - (t["row"] - x),
    "acc / (1 + abs(acc)) / 2": lambda x, c, t: x / (1 + abs(x)) / 2,
    "acc - (bias[n] - (row[m] - 1))": lambda x, c, t: x - (t["bias"] - (t["row"] - 1)),
    "(m * 100 + n) * acc": lambda x, c, t: (rows(x) * 100 + columns(x)) * x,
}

EXACT = {
    "min(max(acc, 0), 1) + clamp(acc, -1, 1)",
    "where(m < n and acc > 0 or m == 2, acc, 3)",
    "where(not (m < n), acc, 0 - acc)",
    "round(acc * 4) / 4",
}
"""These choose among numbers that f32 holds, or scale them by powers of two."""
ROUNDINGS = 4
"""Of values about as large as acc and the result, for the others; functions of CUDA's library are
within 2 units in the last place."""

KERNELS = {
    "naive": "gemm C[m, n] = A[m, k] * B[k, n]\n",
    "tiled": "tile m=16 n=16 k=4\ncache_shared A B\n",
    "wide": "tile m=32 n=64 k=8\nregister_block m=4 n=8\nvectorize C width=4\n",
    "wide, all or nothing": "assume N % 4 == 0\ntile m=32 n=64\nregister_block m=4 n=8\n"
    "vectorize C width=4\n",
}


@pytest.mark.by_default(
    "tiled-alpha *", "tiled-gelu(acc) *", "tiled-where(m < n and *", "wide-relu(acc *"
)
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("expression", EPILOGUES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_computes_its_expression(kernel: str, expression: str) -> None:
    compiled = emitted(f"{KERNELS[kernel]}fuse_epilogue {expression}\n")
    case = met(call(35, 37, 9, 0.7, -0.5, tight=True), compiled)
    given = operands(compiled, case)
    named = {name: np.asarray(value, np.float64) for name, value in given.named.items()}
    with np.errstate(all="ignore"):
        wanted = EPILOGUES[expression](given.acc.astype(float), named["C"], named)
    error = abs(result_of(compiled, case).astype(float) - wanted)
    roundings = 0 if expression in EXACT else ROUNDINGS
    assert (error <= roundings * 2**-24 * (1 + abs(given.acc) + abs(wanted))).all(), error.max()


NAN_GOES_THROUGH = ("relu(acc)", "max(acc, 0)", "min(1, acc)", "clamp(acc, -1, 1)", "silu(acc)")


@pytest.mark.by_default("relu(acc)", "max(acc, 0)")
@pytest.mark.parametrize("expression", NAN_GOES_THROUGH)
def test_nan_goes_through(expression: str) -> None:
    compiled = emitted(f"fuse_epilogue {expression}\n")
    is_nan = np.isnan(result_of(compiled, call(5, 6, 7, data="NaN in A")))
    assert is_nan[2].all() and is_nan.sum() == 6


def test_an_epilogue_without_the_sum_is_refused() -> None:
    with pytest.raises(ScheduleError, match="doesn't use acc"):
        compile_source(Source("tile m=16 n=16\nfuse_epilogue bias[n]\n"))
