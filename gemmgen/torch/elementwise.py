"""Epilogue expressions as PyTorch operations, for gradients that need no kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gemmgen.ir.expr import Expr
from gemmgen.numerics import epilogue_values
from gemmgen.numerics.epilogue_values import ElementArithmetic
from gemmgen.numerics.operators import FUNCTIONS
from gemmgen.torch.pytorch import TorchTensor, pytorch

Value = Any
"""A tensor, or a Python number."""


def evaluate(expr: Expr, names: Mapping[str, Value], elements: Mapping[str, Value]) -> Value:
    """``expr`` with ``names`` for its variables and ``elements`` for its tensors, in shapes that
    broadcast."""
    conditions = {"!": _not, "&&": _and, "||": _or}
    arithmetic = ElementArithmetic[Value](lambda number: number, _call, _where, conditions)
    return epilogue_values.evaluate(expr, names, elements, arithmetic)


def _not(value: Value) -> Value:
    return not value if isinstance(value, bool) else ~value


def _and(left: Value, right: Value) -> Value:
    return left & right


def _or(left: Value, right: Value) -> Value:
    return left | right


def _where(condition: Value, yes: Value, no: Value) -> Value:
    if isinstance(condition, bool):
        return yes if condition else no
    return pytorch().where(condition, yes, no)


def _call(function: str, arguments: list[Value]) -> Value:
    tensors = [x for x in arguments if pytorch().is_tensor(x)]
    if not tensors:
        return float(FUNCTIONS[function](*(np.float64(x) for x in arguments)))
    like = tensors[0]
    full = [x if pytorch().is_tensor(x) else like.new_full((), x) for x in arguments]
    return _functions()[function](*full)


def _functions() -> dict[str, Callable[..., Value]]:
    torch = pytorch()
    activation = torch.nn.functional
    return {
        "relu": torch.relu,
        "gelu": activation.gelu,
        "gelu_tanh": partial(activation.gelu, approximate="tanh"),
        "silu": activation.silu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "exp": torch.exp,
        "erf": torch.erf,
        "sqrt": torch.sqrt,
        "abs": torch.abs,
        "round": torch.round,
        "min": torch.minimum,
        "max": torch.maximum,
        "clamp": torch.clamp,
    }


def broadcast(tensor: TorchTensor, letters: tuple[str, ...], whole: tuple[str, ...]) -> TorchTensor:
    """A tensor over ``letters`` in the order of ``whole``, with extent 1 for letters it lacks."""
    present = [letter for letter in whole if letter in letters]
    tensor = tensor.permute(tuple(letters.index(letter) for letter in present))
    shape = tuple(tensor.shape[present.index(x)] if x in present else 1 for x in whole)
    return tensor.reshape(shape)


def indices(
    letters: tuple[str, ...], extents: Mapping[str, int], device: object
) -> dict[str, TorchTensor]:
    """The value of each letter at each element, in shapes that broadcast."""
    torch = pytorch()
    found: dict[str, TorchTensor] = {}
    for axis, letter in enumerate(letters):
        ones = [1] * len(letters)
        ones[axis] = extents[letter]
        found[letter] = torch.arange(extents[letter], device=device).reshape(ones)
    return found
