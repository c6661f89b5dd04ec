"""The rounding error of a kernel's f32 accumulators over K: by a model of its arithmetic, and its
bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.draw.marks import COLUMN, Axes, Drawing, Series
from gemmgen.draw.scene import Scene
from gemmgen.gpu.compare import rounding_of
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import contraction
from gemmgen.ir.gemm_roles import contraction as roles_of
from gemmgen.ir.target import has
from gemmgen.numerics.formats import Real, held
from gemmgen.numerics.reference import promoted
from gemmgen.numerics.truncation import BYTES, GENERATIONS, on_tensor_cores
from gemmgen.proof.sums import Summation

DEPTHS = (64, 256, 1024, 4096, 16384)
"""Terms of a sum."""
SIDE = 8
"""Rows of A and columns of B: the worst of their products counts."""
_HEIGHT = 420.0


@record
class Errors:
    """The greatest error for each of ``DEPTHS`` and its bound, as shares of the sum of |A * B|."""

    found: tuple[float, ...]
    bound: tuple[float, ...]


def draw(scene: Scene) -> Drawing:
    """Both axes are logarithmic; the bound is the dotted line.

    Raises ``UsageError`` for a kernel whose accumulators are not f32.
    """
    return together({scene.kernel.emitted.name: scene})


def together(scenes: Mapping[str, Scene]) -> Drawing:
    """A line for each kernel."""
    return error_drawing({name: errors_of(scene) for name, scene in scenes.items()})


def error_drawing(found: Mapping[str, Errors]) -> Drawing:
    """The plot of several kernels' errors, by name."""
    return Drawing(
        f"{', '.join(found)}: rounding error of a sum over K",
        " ".join((*map(_sentence, found, found.values()), _ABOUT)),
        COLUMN,
        _HEIGHT,
        (),
        "\n".join(_table(found)),
        (Axes("K", "error / sum of |A * B|", tuple(_series(found)), logarithmic=True),),
    )


_ABOUT = (
    f"Modeled, not measured: the worst of {SIDE * SIDE} dot products of positive numbers, whose "
    "errors add up. Dotted lines are bounds."
)


def errors_of(scene: Scene) -> Errors:
    """Raises ``UsageError`` for accumulators that are not f32."""
    accumulator = scene.problem.accumulate
    if accumulator != "f32":
        raise UsageError(
            f"--what error: accumulators of {scene.kernel.emitted.name} are {accumulator}; "
            "the plot is of f32 accumulators"
        )
    return Errors(
        tuple(greatest_error(_Arithmetic.of(scene), depth) for depth in DEPTHS),
        tuple(bound_of(scene, depth) for depth in DEPTHS),
    )


def bound_of(scene: Scene, depth: int) -> float:
    """The bound that the kernel's header states for split f32, or that ``verify`` allows."""
    product = roles_of(scene.kernel.lowered.interface)
    if product.arithmetic.products > 1:
        return product.arithmetic.split_share(depth)
    return rounding_of(product, depth, "positive")


@record
class _Arithmetic:
    """All that decides a kernel's errors: many kernels have the same.

    ``truncation``: what tensor cores add at a time, and how (``numerics.truncation``); None for
    FMAs.
    """

    a: DType
    b: DType
    summation: Summation
    truncation: tuple[int, ...] | None

    @staticmethod
    def of(scene: Scene) -> _Arithmetic:
        is_fma = contraction(scene.main).atom == "fma"
        return _Arithmetic(
            scene.problem.a.dtype,
            scene.problem.b.dtype,
            Summation.of(scene.kernel.program),
            None if is_fma else _truncation(scene),
        )


@lru_cache(256)
def greatest_error(arithmetic: _Arithmetic, depth: int) -> float:
    """The greatest error of ``SIDE`` x ``SIDE`` dot products, each of ``depth`` products near 1, of
    the operands' types."""
    rng = np.random.default_rng(depth)
    a = held(rng.random((SIDE, depth), np.float32) + 0.5, arithmetic.a).astype(np.float32)
    b = held(rng.random((depth, SIDE), np.float32) + 0.5, arithmetic.b).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float((np.abs(_accumulated(arithmetic, a, b) - exact) / exact).max())


def _accumulated(arithmetic: _Arithmetic, a: Real, b: Real) -> np.ndarray:
    """The dot products as the kernel adds them: FMAs in its order, or truncated by tensor cores,
    and promoted."""
    summation, truncation = arithmetic.summation, arithmetic.truncation
    if truncation is None:
        return summation.sums(a, b).astype(np.float64)
    products = 1
    if summation.split:
        products = summation.split.products
        a, b = summation.split.expanded(a, b)
    interval = summation.terms * products or a.shape[1]
    partial = [
        _truncated(truncation, a[:, first : first + interval], b[first : first + interval])
        for first in range(0, a.shape[1], interval)
    ]
    ones = np.ones((len(partial), 1), np.float32)
    added = np.stack(partial, axis=-1).astype(np.float32)
    return promoted(added.reshape(-1, len(partial)), ones, 0).reshape(SIDE, SIDE).astype(np.float64)


def _truncated(truncation: tuple[int, ...], a: Real, b: Real) -> np.ndarray:
    """The partial accumulators of an interval."""
    addends = (a.astype(np.float64)[:, None, :] * b.astype(np.float64).T).reshape(SIDE * SIDE, -1)
    return on_tensor_cores(addends, *truncation).reshape(SIDE, SIDE)


def _truncation(scene: Scene) -> tuple[int, ...]:
    """How the tensor cores of the kernel's GPU add."""
    if roles_of(scene.kernel.lowered.interface).arithmetic.fraction is not None:
        return BYTES
    return GENERATIONS["sm_90" if has(scene.kernel.program.target, 90) else "sm_80"]


def _series(found: Mapping[str, Errors]) -> Iterator[Series]:
    """The points of a line; exact results are left out, since the axis is logarithmic."""
    for name, errors in found.items():
        line, bound = _points(errors.found), _points(errors.bound)
        if line:
            yield Series(name, line)
            yield Series(f"{name}, bound", bound, "bound")
        else:
            yield Series(f"{name}: exact, bound", bound, "limit")


def _points(values: Sequence[float]) -> tuple[tuple[float, float], ...]:
    return tuple((float(k), value) for k, value in zip(DEPTHS, values, strict=True) if value > 0)


def _sentence(name: str, errors: Errors) -> str:
    at = DEPTHS.index(4096)
    lost = f"{errors.found[at]:.1e}" if errors.found[at] else "exact"
    return f"{name} at K = 4096: {lost}, at most {errors.bound[at]:.1e}."


def _table(found: Mapping[str, Errors]) -> Iterator[str]:
    wide = max(len("error / sum of |A * B|"), *(len(name) + len(", bound") for name in found))
    yield f"{'error / sum of |A * B|':<{wide}}" + "".join(f"{f'K = {k}':>12}" for k in DEPTHS)
    for name, errors in found.items():
        for label, values in ((name, errors.found), (f"{name}, bound", errors.bound)):
            yield f"{label:<{wide}}" + "".join(f"{value:>12.1e}" for value in values)
