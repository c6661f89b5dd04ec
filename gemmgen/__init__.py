"""gemmgen: short schedules to fast, readable, verified CUDA C GEMM kernels.

Names are loaded when they are first used, so that importing ``gemmgen`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemmgen.api.builder import Schedule
    from gemmgen.api.drawings import drawing
    from gemmgen.api.kernels import compile, emit_cuda
    from gemmgen.api.tools import bench, explain, verify
    from gemmgen.api.tuning import tune
    from gemmgen.base.errors import CallError, CannotCheck, GemmgenError, ScheduleError, UsageError
    from gemmgen.explore.suggest import suggest
    from gemmgen.functions.explanation import explain_matmul
    from gemmgen.functions.product import linear, matmul
    from gemmgen.sim.failures import KernelFailure

__version__ = "0.1.0"

_HOMES = {
    "CallError": "gemmgen.base.errors",
    "CannotCheck": "gemmgen.base.errors",
    "GemmgenError": "gemmgen.base.errors",
    "KernelFailure": "gemmgen.sim.failures",
    "Schedule": "gemmgen.api.builder",
    "ScheduleError": "gemmgen.base.errors",
    "UsageError": "gemmgen.base.errors",
    "bench": "gemmgen.api.tools",
    "compile": "gemmgen.api.kernels",
    "drawing": "gemmgen.api.drawings",
    "emit_cuda": "gemmgen.api.kernels",
    "explain": "gemmgen.api.tools",
    "explain_matmul": "gemmgen.functions.explanation",
    "linear": "gemmgen.functions.product",
    "matmul": "gemmgen.functions.product",
    "suggest": "gemmgen.explore.suggest",
    "tune": "gemmgen.api.tuning",
    "verify": "gemmgen.api.tools",
}

__all__ = [
    "CallError",
    "CannotCheck",
    "GemmgenError",
    "KernelFailure",
    "Schedule",
    "ScheduleError",
    "UsageError",
    "__version__",
    "bench",
    "compile",
    "drawing",
    "emit_cuda",
    "explain",
    "explain_matmul",
    "linear",
    "matmul",
    "suggest",
    "tune",
    "verify",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "torch":  # operators of PyTorch, which is imported with the first of them
        return importlib.import_module("gemmgen.torch")
    raise AttributeError(f"module 'gemmgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
