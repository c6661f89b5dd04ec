"""Several matrices in one launch: more than a grid's other dimensions have, and shared ones."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.calling import launches
from gemmgen.calling.launches import LAYOUTS
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import gpu as layer
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit

from .sides import Sides

cp = pytest.importorskip("cupy")

BATCHED = "gemm C[b, m, n] = A[b, m, k] * B[b, k, n]\n"
TILED = "tile m=32 n=32 k=16\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
WIDE = f"{TILED}vectorize A B C width=4\npad A by=4\ndouble_buffer A B\n"
CORES = (
    "dtype A=f16 B=f16 C=f32\ntile m=64 n=64 k=32\ncache_shared A B\nwarp_tile m=32 n=32\n"
    "tensor_core via=wmma\nvectorize A.global B.global width=8\npad A B by=8\n"
)
SCHEDULES = {
    "naive": BATCHED,
    "two letters, shared weights": "gemm C[h, m, s, n] = A[h, s, m, k] * B[k, n]\n",
    "wide": BATCHED + WIDE,
    "parts in order": f"{BATCHED}{WIDE}split_k parts=3\n",
    "tensor cores": BATCHED + CORES,
}


def emitted(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name], name))


@pytest.mark.parametrize("name", SCHEDULES)
def test_is_right_in_every_layout_and_beyond_65535(name: str) -> None:
    kernel = emitted(name)
    assert max(max(case.shape) for case in of(kernel)) > 65_535
    outcome = layer.check(Subject(kernel))
    assert outcome.status == "passed", outcome.detail or outcome.reason


def of(kernel: Emitted) -> tuple[launches.Case, ...]:
    return layer.cases_of(Subject(kernel))


@pytest.mark.parametrize("name", SCHEDULES)
def test_gives_the_bits_of_the_cpu_run(name: str) -> None:
    kernel = emitted(name)
    sides = Sides(kernel)
    for at, layout in enumerate(LAYOUTS):
        shape = fit(kernel, (37, 70, 41, 3, 2))
        sides.check(launches.Case(shape, "normal", 0.7, -1.0, pad=5 * at, layout=layout), name)
    sides.close()


def test_an_expanded_tensor_has_a_stride_of_0() -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-4, 5, s, device="cuda").float() for s in ((5, 33, 20), (20, 17)))
    found = Kernel.of(emitted("naive"))(A=a, B=b.expand(5, 20, 17))
    assert torch.equal(found.cpu(), a.cpu() @ b.cpu())
