"""C by TMA in slices of few rows, and wgmma with as few registers as ptxas takes, on a GPU."""

from __future__ import annotations

from itertools import islice

import pytest
from output_slices import accepted, kind_of
from verify.test_output_slices import FEW_ROWS, kernel

from gemmgen.gpu import device
from gemmgen.pipeline import Emitted
from gemmgen.proof import gpu
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit

cp = pytest.importorskip("cupy")

WGMMA = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
cache_shared A B C
tensor_core via=wgmma
swizzle A B C
double_buffer A B
async_copy A B C via=tma
warp_specialize producers=1
fuse_epilogue acc
"""
BORDERS = {
    "130 registers of an instruction, one block": "tile m=64 n=208 k=64\nwarp_tile m=64 n=208\n",
    "82 registers, two consumers": "tile m=128 n=112 k=64\nwarp_tile m=64 n=112\n",
    "126 of 128 registers at the launch": "tile m=192 n=192 k=64\nwarp_tile m=64 n=192\n",
}


@pytest.fixture(autouse=True)
def tma() -> None:
    if device.capability(cp.cuda.runtime.getDevice()) != (9, 0):
        pytest.skip("these are kernels for sm_90a")


def is_right(emitted: Emitted) -> None:
    m, n = emitted.interface.tiles
    shape = fit(emitted, (2 * m[1] + 3, 2 * n[1] + 8, 133))
    outcome = gpu.check(Subject(emitted, (shape,)))
    assert outcome.status == "passed", outcome


@pytest.mark.parametrize("name", FEW_ROWS)
def test_atom_columns_of_few_rows_are_right(name: str) -> None:
    is_right(kernel(FEW_ROWS[name]))


@pytest.mark.parametrize("seed", range(4))
def test_random_slices_are_right(seed: int) -> None:
    for text, emitted in islice(accepted(100 + seed), 25):
        outcome = gpu.check(Subject(emitted))
        if outcome.status != "passed":
            pytest.fail(f"{kind_of(emitted)}\n{text}{outcome.detail or outcome.reason}")


@pytest.mark.parametrize("name", BORDERS)
def test_wgmma_with_few_registers_is_right(name: str) -> None:
    is_right(kernel(WGMMA + BORDERS[name]))
