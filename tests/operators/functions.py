"""PyTorch's functions of matrices by operators of gemmgen: what a client would write."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

import gemmgen.torch

TYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
}
BATCHES = ("p", "q", "r", "s")


@cache
def product(dtype: torch.dtype, batches: int, epilogue: str = "", transposed: bool = False) -> Any:
    """C = A B for each index of ``batches`` dimensions; ``transposed``: B is stored as B[n, k]."""
    outer = BATCHES[:batches]
    c, a, b = (", ".join((*outer, *inner)) for inner in ("mn", "mk", "nk" if transposed else "kn"))
    kind = TYPES[dtype]
    acc = "f64" if kind == "f64" else "f32"
    lines = [f"gemm C[{c}] = A[{a}] * B[{b}]", f"dtype A={kind} B={kind} C={kind} acc={acc}"]
    lines += [f"fuse_epilogue {epilogue}"] if epilogue else []
    name = f"product_{kind}_{batches}{'_transposed' * transposed}{'_bias' if epilogue else ''}"
    return gemmgen.torch.op("".join(f"{line}\n" for line in lines), name=f"functions::{name}")


def mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a.dtype, 0)(a, b)


def addmm(
    c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    c = c.expand(a.shape[0], b.shape[1])
    return product(a.dtype, 0)(a, b, c, float(alpha), float(beta))


def bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a.dtype, 1)(a, b)


def baddbmm(
    c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    c = c.expand(a.shape[0], a.shape[1], b.shape[2])
    return product(a.dtype, 1)(a, b, c, float(alpha), float(beta))


def mv(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return product(a.dtype, 0)(a, x[:, None])[:, 0]


def addmv(
    y: torch.Tensor, a: torch.Tensor, x: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    y = y.expand(a.shape[0])[:, None]
    return product(a.dtype, 0)(a, x[:, None], y, float(alpha), float(beta))[:, 0]


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """With PyTorch's rules for vectors, and batches that broadcast."""
    left, right = a, b
    if a.ndim == 1:
        left = a[None, :]
    if b.ndim == 1:
        right = b[:, None]
    outer = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = left.expand(*outer, *left.shape[-2:])
    right = right.expand(*outer, *right.shape[-2:])
    found = product(a.dtype, len(outer))(left, right)
    if b.ndim == 1:
        found = found[..., 0]
    return (
        found[..., 0, :] if a.ndim == 1 and b.ndim > 1 else found[..., 0] if a.ndim == 1 else found
    )


def linear(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    weight = w[None, :] if w.ndim == 1 else w
    rows = x.reshape(-1, x.shape[-1])
    if bias is None:
        found = product(x.dtype, 0, transposed=True)(rows, weight)
    else:
        wide = bias.expand(weight.shape[0])
        found = product(x.dtype, 0, "acc + bias[n]", transposed=True)(rows, weight, wide)
    found = found.reshape(*x.shape[:-1], weight.shape[0])
    return found[..., 0] if w.ndim == 1 else found


FUNCTIONS = {
    "mm": mm,
    "addmm": addmm,
    "bmm": bmm,
    "baddbmm": baddbmm,
    "matmul": matmul,
    "nn.functional.linear": linear,
    "addmv": addmv,
    "mv": mv,
}
"""By the names of PyTorch's own samples (``torch.testing``'s ``op_db``)."""
