"""The common functions of this folder: kernels on a GPU or the CPU, and checks of their results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gemmgen
from gemmgen.base.errors import CannotCheck

try:
    import torch
except ImportError:
    torch = None

REFERENCE = "PyTorch" if torch else "NumPy"
"""The reference in float64: PyTorch if it is installed."""
HERE = Path(__file__).parent
UNIT = 2.0**-24
"""Unit roundoff of float32: a rounded result's relative error is at most this."""


def load(*schedules: str) -> tuple[Callable[..., np.ndarray], ...]:
    """Each schedule's kernel as a function of NumPy arrays: on the GPU, or else on the CPU."""
    try:
        kernels = [gemmgen.compile(HERE / name) for name in schedules]
    except CannotCheck as why:
        print(f"on the CPU, by running the emitted text, against {REFERENCE} ({why})")
        return tuple(gemmgen.compile(HERE / name, device="cpu") for name in schedules)
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    print(f"on the GPU, an {name.decode()}, against {REFERENCE}")

    def on_gpu(kernel: Callable[..., object]) -> Callable[..., np.ndarray]:
        def call(**given: object) -> np.ndarray:
            there = {k: cupy.asarray(v) if np.ndim(v) else v for k, v in given.items()}
            return cupy.asnumpy(kernel(**there))

        return call

    return tuple(on_gpu(kernel) for kernel in kernels)


def rounding(roundings: int, scale: np.ndarray) -> np.ndarray:
    """The error bound of a sum with this many consecutive float32 roundings.

    ``scale`` is the sum of magnitudes: the bound is n u / (1 - n u) of it, for n roundings of unit
    u (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, equation (3.5)).
    """
    return roundings * UNIT / (1 - roundings * UNIT) * scale


def check(what: str, got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> bool:
    """Whether every element is within its bound; prints the one with the largest share of it."""
    assert got.shape == want.shape == bound.shape, (got.shape, want.shape, bound.shape)
    error = np.abs(got - want)
    right = bool((error <= bound).all())  # False for a NaN
    at = np.unravel_index(np.argmax(error / bound), error.shape)
    verdict = "within" if right else "BEYOND"
    print(f"{what}: greatest error {error.max():.2e}; {error[at]:.2e} is {verdict} {bound[at]:.2e}")
    return right


def finish(*checks: bool) -> None:
    """Ends the program, with exit code 1 unless all checks passed."""
    sys.exit(0 if all(checks) else 1)
