"""gemmgen: short schedules to fast, readable, verified CUDA C GEMM kernels.

Names are loaded when they are first used, so that importing ``gemmgen`` costs nothing.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gemmgen.api import compile, emit
    from gemmgen.errors import ScheduleError
    from gemmgen.schedule.builder import Schedule

__version__ = "0.1.0"
__all__ = ["Schedule", "ScheduleError", "__version__", "compile", "emit"]

_HOMES = {
    "compile": "gemmgen.api",
    "Schedule": "gemmgen.schedule.builder",
    "ScheduleError": "gemmgen.errors",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gemmgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """``gemmgen.emit`` is the function, though the folder of that name is imported at some time."""

    @property
    def emit(self) -> Callable[..., str]:
        return cast(Callable[..., str], importlib.import_module("gemmgen.api").emit)

    @emit.setter
    def emit(self, folder: object) -> None:
        """The import system puts a package's folders here."""


sys.modules[__name__].__class__ = _Package
