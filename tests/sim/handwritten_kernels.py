"""The kernels of tests/handwritten: their texts, interfaces, and what they must compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from functions import with_functions

from gemmgen.calling.inputs import drawn
from gemmgen.calling.launches import Case
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import Aligned, AtLeast, AtMost, MultipleOf
from gemmgen.numerics import reference
from gemmgen.numerics.fma import fused
from gemmgen.numerics.reference import Comparison
from gemmgen.sim.allocation import allocated, arguments_of
from gemmgen.sim.run import CompiledKernel, compile_kernel

DIRECTORY = Path(__file__).parent.parent / "handwritten"

_BLOCKS = {  # threads (x, y), tile (m, n), greatest stride through k
    "naive": ((32, 8), (8, 32), 1),
    "uncoalesced": ((32, 8), (32, 8), 1),
    "tiled": ((32, 32), (32, 32), 64),
    "padded": ((32, 32), (32, 32), 64),
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


def check(name: str, case: Case, changed: str | None = None) -> Comparison:
    """Runs the kernel (or the text ``changed``) and compares every bit, padding included."""
    kernel = compile_kernel(text(name) if changed is None else changed, interface(name))
    return run(kernel, case, with_bias=name == "vectorized")


def run(kernel: CompiledKernel, case: Case, *, with_bias: bool = False) -> Comparison:
    interface = kernel.interface
    given = drawn(interface, case)
    acc = reference.split(given["A"], given["B"], interface.parts, STEP)
    if with_bias:
        want = np.maximum(acc + given["bias"], np.float32(0))
    else:
        scaled = np.float32(case.alpha) * acc
        want = scaled if case.beta == 0 else fused(np.float32(case.beta), given["C"], scaled)
    unread = ("C",) if case.beta == 0 else ()  # C holds the poison of what was never written
    memory = allocated(interface, case, given, unread)
    arguments = arguments_of(interface, case, memory)
    kernel.run(arguments, order=case.order, landing=case.landing, seed=1, unreadable=unread)
    result = reference.compare(memory["C"].view, want)
    for name, matrix in memory.items():
        touched = matrix.touched()
        if touched:
            return replace(result, reason=f"{name}: {touched}")
    return result
