"""Keeps ``torch.compile`` from tracing a kernel's launcher: a call breaks the graph.

A traced launcher would be a graph of its bookkeeping, without the launch.  ``gemmgen.torch.op``
makes an operator that a graph can contain.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar, cast

REASON = "a gemmgen kernel is not a PyTorch operator; gemmgen.torch.op makes one"

_Function = TypeVar("_Function", bound=Callable[..., object])
_codes: list[CodeType] = []
_settled = 0


def opaque(function: _Function) -> _Function:
    """Decorates a function that breaks the graph of a compiled caller."""
    marked = cast(Any, function)
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = REASON
    _codes.append(marked.__code__)
    return function


def leave_untraced() -> None:
    """Makes PyTorch, if it is loaded, run opaque functions and their callees untraced.

    It is done once for the code of each function, so that calls have no overhead.
    """
    global _settled
    if _settled == len(_codes) or "torch" not in sys.modules:
        return
    try:
        frames: Any = importlib.import_module("torch._C._dynamo.eval_frame")
        skip = frames._FrameAction.SKIP
        strategy = frames._FrameExecStrategy(skip, skip)
        for code in _codes:
            frames.set_code_exec_strategy(code, strategy)
    except (ImportError, AttributeError):
        pass  # PyTorch before 2.7 has no such strategies: the graph still breaks
    _settled = len(_codes)
