"""``torch.compile`` steps around a kernel's launcher: a call breaks the graph, and runs as it is.

Traced, the launcher would be a graph of its bookkeeping, and the launch is nothing that a graph can
hold.  ``gemmgen.torch.op`` makes an operator that one can.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar, cast

REASON = "a gemmgen kernel is no operator of PyTorch; gemmgen.torch.op makes one"

_Function = TypeVar("_Function", bound=Callable[..., object])
_codes: list[CodeType] = []
_settled = 0


def opaque(function: _Function) -> _Function:
    """Decorates a function at whose calls a compiled caller breaks its graph."""
    marked = cast(Any, function)
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = REASON
    _codes.append(marked.__code__)
    return function


def leave_untraced() -> None:
    """Has PyTorch, where it is loaded, run opaque functions and all that they call untraced.

    It is told by the code of each function, once, so that calls cost what they cost without it.
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
        pass  # a PyTorch before 2.7, which has no such strategies: the graph still breaks
    _settled = len(_codes)
