"""PyTorch's own samples of its functions, computed by gemmgen and compared with float64."""

from __future__ import annotations

import math
import sys
import types
import unittest
from collections.abc import Iterator
from typing import Any

import torch

from .functions import FUNCTIONS, TYPES

UNIT = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11, "bf16": 2.0**-8}
TINY = {"f32": 2.0**-149, "f64": 2.0**-1074, "f16": 2.0**-24, "bf16": 2.0**-133}


def samples(
    name: str, dtype: torch.dtype, device: str
) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """(PyTorch's function, its arguments, keyword arguments), also with strides of all kinds."""
    try:
        import expecttest  # noqa: F401
    except ImportError:  # needed only by torch.testing's own tests
        sys.modules["expecttest"] = stub = types.ModuleType("expecttest")
        stub.TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        if info.name != name or dtype not in info.supported_dtypes(device):
            continue
        for sample in info.sample_inputs(device, dtype, requires_grad=True):
            for given in (sample, sample.noncontiguous()):
                yield info.op, (given.input, *given.args), given.kwargs


def check(function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """What is wrong with gemmgen's result and gradients: nothing, or why."""
    dtype = args[0].dtype
    leaves = [x.detach().requires_grad_() if torch.is_tensor(x) else x for x in args]
    wide = [x.detach().double().requires_grad_() if torch.is_tensor(x) else x for x in args]
    sizes = [x.detach().double().abs() if torch.is_tensor(x) else x for x in args]
    magnitudes = {k: abs(v) for k, v in kwargs.items() if isinstance(v, int | float)}
    extra = {k: v for k, v in kwargs.items() if k in ("alpha", "beta")}
    assert set(extra) == set(kwargs), kwargs
    found = FUNCTIONS[name](*leaves, **extra)
    wanted = function(*wide, **extra)
    wrong: list[str] = []
    if found.shape != wanted.shape or found.dtype != dtype:
        return [f"{found.dtype} {tuple(found.shape)}, not {dtype} {tuple(wanted.shape)}"]
    depth = max([2, *(x.shape[-1] for x in args if torch.is_tensor(x) and x.ndim)]) + 4
    size = function(*sizes, **magnitudes)
    wrong += compare("result", found, wanted, size, depth)
    if not found.requires_grad:
        return wrong
    gradient = torch.ones_like(found)
    inputs = [x for x in leaves if torch.is_tensor(x)]
    wides = [x for x in wide if torch.is_tensor(x)]
    got = torch.autograd.grad(found, inputs, gradient, allow_unused=True)
    want = torch.autograd.grad(wanted, wides, gradient.double(), allow_unused=True)
    absolute = [x.requires_grad_() if torch.is_tensor(x) else x for x in sizes]
    bounds = torch.autograd.grad(
        function(*absolute, **magnitudes),
        [x for x in absolute if torch.is_tensor(x)],
        gradient.double(),
        allow_unused=True,
    )
    for place, (g, w, bound) in enumerate(zip(got, want, bounds, strict=True)):
        if w is None or g is None:
            if (w is not None and w.any()) or (g is not None and g.any()):
                wrong.append(f"gradient {place}: {g} for {w}")
            continue
        depth = found.numel() + 4
        wrong += compare(f"gradient {place}", g, w, bound, depth)
    return wrong


def compare(
    what: str, found: torch.Tensor, wanted: torch.Tensor, size: torch.Tensor, depth: int
) -> list[str]:
    """Checks each element against the bound of ``depth`` additions with magnitudes ``size``."""
    kind = TYPES[found.dtype]
    sums = UNIT["f64" if kind == "f64" else "f32"]
    least = max(sums, UNIT["f64"] * 4)
    bound = 2 * depth * least * size + 4 * UNIT[kind] * (
        size if "gradient" in what else wanted.abs()
    )
    bound = bound + 2 * depth * TINY[kind]
    error = (found.double() - wanted).abs()
    right = (error <= bound) | (found.double() == wanted.to(found.dtype).double())
    right |= found.isnan() & wanted.isnan()
    if bool(right.all()):
        return []
    worst = (error / bound).nan_to_num(math.inf).max().item() if error.numel() else 0
    return [f"{what} {tuple(found.shape)}: off by {worst:.3g} times what rounding gives"]
