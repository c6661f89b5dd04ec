"""The models of tensor cores in C++ and in NumPy: the same bits, for numbers of every size."""

from __future__ import annotations

import numpy as np
import pytest
from gpu.tensor_core_calls import ALL, KINDS, Kind, as_on, compiled, drawn, wanted

from gemmgen.sim.packing import Argument
from gemmgen.sim.run import CompiledKernel

SHAPE = (33, 24, 272)


@pytest.mark.by_default("mma_bf16", "wgmma_e5m2_x_e4m3")
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name.replace(" ", "_"))
def test_both_models_agree(kind: Kind) -> None:
    seed = 100 * ALL.index(kind)
    found = (compiled(kind, each) for each in range(seed, seed + 6))
    emitted = as_on(next(each for each in found if each is not None), "sm_90a")
    problem, (m, n, k) = emitted.program.problem.written, SHAPE
    kernel = CompiledKernel(emitted.text, emitted.interface)
    for what in KINDS:
        a = drawn(what, (m, k), problem.a.dtype, seed)
        b = drawn("normal" if what == "least" else what, (n, k), problem.b.dtype, seed + 1)
        a, b = (aligned(x) for x in (a, b))
        c = np.full((m, n), np.nan, np.float32)
        numbers: dict[str, Argument] = {"M": m, "N": n, "K": k, "lda": k, "ldb": k, "ldc": n}
        scalars: dict[str, Argument] = {"alpha": 1.0, "beta": 0.0}
        given = {**numbers, **scalars, "A": a, "B": b, "C": c}
        names = {param.name for param in emitted.interface.params}
        kernel.run({name: value for name, value in given.items() if name in names})
        want = wanted(emitted, a, b, "sm_90a")
        same = (c.view(np.uint32) == want.view(np.uint32)) | (np.isnan(c) & np.isnan(want))
        assert same.all(), what
        assert np.isfinite(want).any() or what == "wide"
    kernel.close()


def aligned(elements: np.ndarray) -> np.ndarray:
    """The same at a multiple of 256 bytes, as TMA needs."""
    memory = np.zeros(elements.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    found = memory[start : start + elements.nbytes].view(elements.dtype).reshape(elements.shape)
    found[...] = elements
    return found
