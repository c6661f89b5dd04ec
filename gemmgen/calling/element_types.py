"""The type of an output that a call allocates: the same kind of type as its inputs have.

bf16, e4m3 and e5m2 have two kinds of arrays: of a type that represents their numbers (those of
``ml_dtypes`` and PyTorch), and of unsigned integers that hold their bits.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import numpy as np

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View
from gemmgen.ir.dtypes import RAW
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import NAMES, STORAGE

NOT_NUMPYS = tuple(dtype for dtype in RAW if NAMES[dtype] != STORAGE[dtype].name)
"""Types whose numbers NumPy does not know."""


def output_type(output: Param, interface: Interface, views: Mapping[str, View]) -> str:
    """The name of the type that an absent ``output`` is allocated in.

    The first input of such a type decides: if it holds bits, so does the output; else the output
    is an array of numbers.
    """
    if output.dtype not in NOT_NUMPYS:
        return NAMES[output.dtype]
    for param in interface.tensors:
        if param.name != output.name and param.dtype in NOT_NUMPYS and param.name in views:
            holds_bits = views[param.name].dtype == STORAGE[param.dtype].name
            return STORAGE[output.dtype].name if holds_bits else NAMES[output.dtype]
    return NAMES[output.dtype]


def array_type(output: Param, name: str) -> np.dtype[np.generic]:
    """NumPy's type of this ``name``, with the types that ``ml_dtypes`` adds; ``CallError`` if it
    is not installed."""
    if name == STORAGE[output.dtype].name or output.dtype not in NOT_NUMPYS:
        return STORAGE[output.dtype]
    try:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        raise CallError(
            f"{output.name} is {name}, a type that NumPy lacks; install ml_dtypes, or pass "
            f"{output.name} as an array of {STORAGE[output.dtype].name}, for its bits"
        ) from None
