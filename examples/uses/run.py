"""What the pages of this folder share: a kernel on the machine that is there, and its check."""

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
"""Whose result in float64 a kernel's is compared with: PyTorch's where it is installed."""
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


def rounding(terms: int, scale: np.ndarray) -> np.ndarray:
    """How far ``terms`` float32 roundings, one after another, can lead from the true sum.

    ``scale`` is the sum of the terms' magnitudes: n u / (1 - n u) of it, for n roundings of unit u
    (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, equation (3.5)).
    """
    return terms * UNIT / (1 - terms * UNIT) * scale


def check(what: str, got: np.ndarray, want: np.ndarray, bound: np.ndarray) -> bool:
    """Is every element within its bound?  Prints the one that comes nearest to it, or is beyond."""
    assert got.shape == want.shape == bound.shape, (got.shape, want.shape, bound.shape)
    error = np.abs(got - want)
    right = bool((error <= bound).all())  # not so of a NaN
    at = np.unravel_index(np.argmax(error / bound), error.shape)
    told = "within" if right else "BEYOND"
    print(f"{what}: greatest error {error.max():.2e}; {error[at]:.2e} is {told} {bound[at]:.2e}")
    return right


def finish(*checks: bool) -> None:
    """Ends the program: with exit code 1 unless all is well."""
    sys.exit(0 if all(checks) else 1)
