"""The kernels of tests/handwritten: their texts, interfaces, and what they must compute."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from functions import with_functions

from gemmgen.ir.interface import Aligned, AtLeast, AtMost, Interface, MultipleOf, Param
from gemmgen.numerics import reference
from gemmgen.numerics.reference import Comparison
from gemmgen.sim.memory import EmbeddedView
from gemmgen.sim.run import CompiledKernel, compile_kernel

DIRECTORY = Path(__file__).parent.parent / "handwritten"

_BLOCKS = {  # threads (x, y), tile (m, n), greatest stride through k
    "naive": ((32, 8), (8, 32), 1),
    "uncoalesced": ((32, 8), (32, 8), 1),
    "tiled": ((32, 32), (32, 32), 64),
    "coalesced": ((32, 32), (32, 32), 64),
    "double_buffered": ((32, 32), (32, 32), 64),
    "register_blocked": ((16, 16), (128, 128), 16),
    "vectorized": ((16, 16), (128, 128), 16),
    "split_k": ((16, 16), (64, 64), 96),
}
PARTS, STEP = 4, 16
"""Of split_k."""
NAMES = tuple(_BLOCKS)


def text(name: str) -> str:
    return with_functions((DIRECTORY / f"{name}.cu").read_text(encoding="utf-8"))


def interface(name: str) -> Interface:
    block, (tile_m, tile_n), stride = _BLOCKS[name]
    extents = tuple(Param(extent, "extent") for extent in "MNK")
    a = (Param("A", "tensor", ("m", "k")), Param("lda", "ld"))
    b = (Param("B", "tensor", ("k", "n")), Param("ldb", "ld"))
    c = (Param("C", "tensor", ("m", "n"), written=True), Param("ldc", "ld"))
    alpha, beta = Param("alpha", "scalar"), Param("beta", "scalar")
    params = (*extents, alpha, *a, *b, beta, *c)
    needs = [AtLeast("lda", "K"), AtLeast("ldb", "N"), AtLeast("ldc", "N")]
    for extent, step in (("M", tile_m), ("N", tile_n), ("K", stride)):
        needs.append(AtMost(extent, 2**31 - 1 - step))
    if name == "split_k":
        workspace = Param("workspace", "workspace", per_tile=PARTS * tile_m * tile_n, align=16)
        params = (*params, workspace, Param("arrived", "counter", per_tile=1, zeroed=True))
    if name == "vectorized":
        params = (*extents, *a, *b, Param("bias", "tensor", ("n",)), *c)
    if name in ("vectorized", "split_k"):
        needs += [Aligned(tensor, 16) for tensor in "ABC"]
        needs += [MultipleOf(f"ld{tensor}", 4) for tensor in "abc"]
    pitch = (("A", "lda"), ("B", "ldb"), ("C", "ldc"))
    tiles = (("M", tile_m), ("N", tile_n))
    parts = PARTS if name == "split_k" else 1
    return Interface("gemm", params, block, tiles, tuple(needs), 0, 0, pitch, parts=parts)


@dataclass(frozen=True)
class Case:
    """One call: extents, scalars, and how far leading dimensions exceed their rows."""

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    order: str = "ascending"
    landing: str = "late"


@functools.lru_cache(maxsize=64)
def inputs(m: int, n: int, k: int, parts: int = 1) -> tuple[reference.Inputs, reference.F32]:
    """Zero-mean inputs, and the product of A and B summed in the order of k, part by part."""
    drawn = reference.normal(m, n, k, seed=0)
    return drawn, reference.split(drawn.a, drawn.b, parts, STEP)


def check(name: str, case: Case, changed: str | None = None) -> Comparison:
    """Runs the kernel (or the text ``changed``) and compares every bit, padding included."""
    kernel = compile_kernel(text(name) if changed is None else changed, interface(name))
    return run(kernel, case, with_bias=name == "vectorized")


def run(kernel: CompiledKernel, case: Case, *, with_bias: bool = False) -> Comparison:
    drawn, acc = inputs(case.m, case.n, case.k, kernel.interface.parts)
    values = {"M": case.m, "N": case.n, "K": case.k, "alpha": case.alpha, "beta": case.beta}
    bias = np.linspace(-2, 2, case.n, dtype=np.float32)
    if with_bias:
        del values["alpha"], values["beta"]
        values["bias"] = bias
        want = np.maximum(acc + bias, np.float32(0))
    else:
        want = reference.default_epilogue(acc, drawn.c, case.alpha, case.beta)
    matrices: dict[str, EmbeddedView] = {}
    wide = any(isinstance(each, MultipleOf) for each in kernel.interface.requirements)
    turned = [p.name for p in kernel.interface.params if p.indices == ("k", "m")]
    stored_a = np.ascontiguousarray(drawn.a.T) if turned else drawn.a
    for i, (name, held) in enumerate((("A", stored_a), ("B", drawn.b), ("C", drawn.c))):
        pitch = held.shape[1] + (case.pad + 4 * i if case.pad else 0)  # so that swapped ones show
        if wide:
            pitch = -(-pitch // 4) * 4
        matrices[name] = EmbeddedView.holding(held, pitch)
        values |= {name: matrices[name].view, f"ld{name.lower()}": pitch}
    if case.beta == 0:  # C holds the poison of what was never written
        matrices["C"] = EmbeddedView.poisoned(case.m, case.n, matrices["C"].pitch)
        values["C"] = matrices["C"].view
    unreadable = ("C",) if case.beta == 0 else ()
    kernel.run(values, order=case.order, landing=case.landing, seed=1, unreadable=unreadable)
    result = reference.compare(matrices["C"].view, want)
    for name, matrix in matrices.items():
        beside = matrix.touched()
        if beside:
            return replace(result, reason=f"{name}: {beside}")
    return result
