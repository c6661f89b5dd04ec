"""PyTorch's products and their operands, which benchmarks compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TYPES = {x: x for x in ("bf16", "f16", "f32")} | {
    "e4m3": "A=e4m3 B=e4m3 C=bf16",
    "i8": "A=i8 B=i8 C=i32",
}
"""What ``dtype`` says in a schedule."""
MOST_ERROR = {"e4m3": 1e-2}
"""The greatest error of a result, relative to its norm: accumulators of e4m3 have 13 bits."""
OTHERWISE = 4e-3
"""The same for other types."""


def stated(dtype: str) -> str:
    """The arguments of ``dtype`` in a schedule."""
    return TYPES[dtype] if "=" in TYPES[dtype] else f"A={dtype} B={dtype} C={dtype}"


def most_error(dtype: str) -> float:
    return MOST_ERROR.get(dtype, OTHERWISE)


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    """Random normal numbers on the GPU; of i8 those of one digit."""
    import torch

    kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    kinds["e4m3"] = torch.float8_e4m3fn
    if dtype == "i8":
        return torch.randint(-9, 10, shape, dtype=torch.int8, device="cuda")
    return torch.randn(shape, device="cuda").to(kinds[dtype])


def vendor_call(left: Any, right: Any, dtype: str) -> Callable[[], Any]:
    """``torch.mm``, to be captured in a graph; of bytes ``_scaled_mm`` with its fast accumulators
    and ``_int_mm``, whose shapes are multiples of 16, A[m, k] * B[n, k]."""
    import torch

    if dtype == "i8":
        return lambda: torch._int_mm(left, right)
    if dtype == "e4m3":
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(
            left, right, one, one, out_dtype=torch.bfloat16, use_fast_accum=True
        )
    return lambda: torch.mm(left, right)
