"""Epilogue expressions as operations of PyTorch, where no kernel is needed: they may broadcast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gemmgen.interpreter.operators import ARITHMETIC, COMPARE, FUNCTIONS
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide
from gemmgen.torch.pytorch import TorchTensor, pytorch

Value = Any
"""A tensor, or a number of Python's."""


def evaluate(expr: Expr, names: Mapping[str, Value], elements: Mapping[str, Value]) -> Value:
    """``expr`` with ``names`` for its variables and ``elements`` for its tensors, in shapes that
    broadcast."""

    def of(part: Expr) -> Value:
        return evaluate(part, names, elements)

    match expr:
        case Int(value) | Float(value):
            return value
        case Var(name):
            return names[name]
        case Element(buffer, _):
            return elements[buffer]
        case Wide(operand):
            return of(operand)
        case Unary("-", operand):
            return -of(operand)
        case Unary(_, operand):
            return _not(of(operand))
        case Binary("&&", left, right):
            return of(left) & of(right)
        case Binary("||", left, right):
            return of(left) | of(right)
        case Binary("/", left, right):
            return of(left) / of(right)
        case Binary(op, left, right):
            return (ARITHMETIC | COMPARE)[op](of(left), of(right))
        case Select(condition, yes, no):
            return _where(of(condition), of(yes), of(no))
        case Call(function, arguments):
            return _call(function, [of(argument) for argument in arguments])


def _not(value: Value) -> Value:
    return not value if isinstance(value, bool) else ~value


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
    """A tensor over ``letters`` in the order of ``whole``, with extents of 1 where it lacks one."""
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
    for place, letter in enumerate(letters):
        ones = [1] * len(letters)
        ones[place] = extents[letter]
        found[letter] = torch.arange(extents[letter], device=device).reshape(ones)
    return found
