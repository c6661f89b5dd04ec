"""gemmgen: short schedules to fast, readable, verified CUDA C GEMM kernels.

Names are loaded when they are first used, so that importing ``gemmgen`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemmgen.api import compile, emit_cuda
    from gemmgen.errors import ScheduleError
    from gemmgen.schedule.builder import Schedule

__version__ = "0.1.0"
__all__ = ["Schedule", "ScheduleError", "__version__", "compile", "emit_cuda"]

_HOMES = {
    "compile": "gemmgen.api",
    "emit_cuda": "gemmgen.api",
    "Schedule": "gemmgen.schedule.builder",
    "ScheduleError": "gemmgen.errors",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "torch":  # operators of PyTorch, which is imported with the first of them
        return importlib.import_module("gemmgen.torch")
    raise AttributeError(f"module 'gemmgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
