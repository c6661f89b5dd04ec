"""Split f32 (``decompose``) on a GPU: within the bound of its header, and beside cuBLAS's sgemm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import cublas, device
from gemmgen.gpu.device import DeviceArray
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source

cp = pytest.importorskip("cupy")

EXAMPLES = Path(__file__).parents[2] / "examples"
SIDE = 256
WORSE = {4096: 2.5, 65536: 8.0}
"""How many times sgemm's greatest error split f32's may be: an H200 had 2.2 for K = 4096 (mma.sync,
positive numbers; wgmma 1.12) and 3.6 for K = 65536, which sgemm splits along K."""


def drawn(data: str, shape: tuple[int, int], seed: int) -> DeviceArray:
    rng = np.random.default_rng(seed)
    if data == "uniform":
        found = rng.random(shape)
    elif data == "lognormal":
        found = np.exp(4 * rng.standard_normal(shape))
    else:
        found = rng.standard_normal(shape)
        if data == "exponents":
            found = found * np.exp2(rng.integers(-40, 41, shape))
    return cp.asarray(found.astype(np.float32))


@pytest.mark.parametrize("data", ("normal", "uniform", "lognormal", "exponents"))
@pytest.mark.parametrize("depth", WORSE)
@pytest.mark.parametrize("name", ("mma/split_f32", "hopper/split_f32", "hopper/split_f16"))
def test_error_is_within_the_stated_bound(
    name: str, depth: int, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.startswith("hopper") and device.capability(cp.cuda.runtime.getDevice()) != (9, 0):
        pytest.skip("wgmma is an instruction of sm_90a alone")
    source = Source((EXAMPLES / f"{name}.sched").read_text(encoding="utf-8"), name)
    emitted = compile_source(source)
    a, b = (drawn(data, (SIDE, depth), seed) for seed in (1, 2))
    found = cp.empty((SIDE, SIDE), cp.float32)
    Kernel.of(emitted)(A=a, B=b, C=found)
    sgemm = cp.empty_like(found)
    # C = A B^T with B stored by rows: the columns of B^T.
    cublas.gemm(cublas.matrix(a), cublas.matrix(b, transposed=True), cublas.matrix(sgemm))()
    wide = a.astype(cp.float64), b.astype(cp.float64)
    exact, size = wide[0] @ wide[1].T, abs(wide[0]) @ abs(wide[1]).T
    scaled = emitted.program.splits[0].scaled if emitted.program.splits else False
    if scaled:  # what lies far below the largest element of its row is not split to the last bit
        largest = abs(wide[0]).max(1)[:, None] * abs(wide[1]).max(1)
        share = emitted.interface.arithmetic.split_share(depth)
        beyond = abs(found.astype(cp.float64) - exact) - depth * 2.0**-38 * largest
        assert float((beyond / size).max()) <= share
    ours, theirs = (abs(c.astype(cp.float64) - exact) / size * 2.0**24 for c in (found, sgemm))
    bound = emitted.interface.arithmetic.split_share(depth) * 2.0**24
    greatest, rms = (
        [float(measure(error)) for error in (ours, theirs)]
        for measure in (lambda e: e.max(), lambda e: (e**2).mean() ** 0.5)
    )
    with capsys.disabled():
        print(
            f"\n{name}, {data}, K = {depth}, in units of 2^-24 |A||B|: greatest {greatest[0]:.2f} "
            f"({greatest[0] / greatest[1]:.2f} of sgemm's), rms {rms[0]:.2f} "
            f"({rms[0] / rms[1]:.2f} of sgemm's); stated bound {bound:.0f}"
        )
    if scaled:
        return
    assert greatest[0] <= bound
    assert greatest[0] <= WORSE[depth] * max(greatest[1], 1.0)
