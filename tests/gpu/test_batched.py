"""Many matrices on a GPU: any strides, shared operands, more matrices than a grid is high."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source
from gemmgen.proof import gpu
from gemmgen.proof.outcome import Subject
from tests.batches.schedules import SCHEDULES

cp = pytest.importorskip("cupy")
BATCHED = SCHEDULES["batched"]
NAIVE = SCHEDULES["naive"]
SCORES = (
    "gemm S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]\ntile i=64 j=64 d=8\n"
    "cache_shared Q[d, i] K[d, j]\nregister_block i=4 j=4\nvectorize Q K S width=4\n"
)


def kernel(text: str) -> Kernel:
    return Kernel.of(compile_source(Source(text)))


def integers(*shape: int) -> cp.ndarray:
    return cp.random.randint(-4, 5, shape).astype("float32")


@pytest.mark.parametrize("name", SCHEDULES)
def test_cublas_gives_the_same(name: str) -> None:
    """Batches that are consecutive, interleaved, shared; 70,001 of them."""
    outcome = gpu.check(Subject(compile_source(Source(SCHEDULES[name]))))
    assert outcome.status == "passed", outcome.detail or outcome.reason


def test_matrices_of_any_strides_are_used_in_place() -> None:
    a, b, c = integers(6, 40, 24), integers(24, 3, 52), integers(3, 40, 52)
    given = {"A": a[::-2], "B": b.transpose(1, 0, 2), "C": c}
    assert kernel(NAIVE)(**given) is c
    np.testing.assert_array_equal(c.get(), (a[::-2] @ b.transpose(1, 0, 2)).get())


def test_an_operand_of_stride_0_is_shared() -> None:
    a, b = integers(5, 64, 32), cp.broadcast_to(integers(32, 64), (5, 32, 64))
    np.testing.assert_array_equal(kernel(BATCHED)(A=a, B=b).get(), (a @ b).get())


def test_heads_stay_where_attention_has_them() -> None:
    """Stored batch, position, head, channel; and written so."""
    q, k = (integers(2, 72, 3, 16) for _ in range(2))
    s = cp.empty((2, 72, 3, 72), "float32")
    views = {name: x.transpose(0, 2, 1, 3) for name, x in (("Q", q), ("K", k), ("S", s))}
    kernel(SCORES)(**views)
    np.testing.assert_array_equal(s.get(), cp.einsum("bihd,bjhd->bihj", q, k).get())


def test_torch_tensors_that_are_permuted_and_expanded() -> None:
    torch = pytest.importorskip("torch")
    q = torch.randint(-4, 5, (2, 72, 3, 16), device="cuda").float().permute(0, 2, 1, 3)
    k = torch.randint(-4, 5, (2, 1, 80, 16), device="cuda").float().expand(2, 3, 80, 16)
    found = kernel(SCORES)(Q=q, K=k)
    assert torch.equal(found, q @ k.transpose(2, 3)) and found.is_contiguous()


def test_matrices_more_than_four_gigabytes_apart() -> None:
    """A stride is 64 bits wide."""
    apart = 2**31 + 64
    try:
        memory = cp.zeros(apart + 64, "float32")
    except cp.cuda.memory.OutOfMemoryError:
        pytest.skip("the GPU has less than 9 GB of free memory")
    a = cp.ndarray((2, 8, 8), "float32", memory.data, (4 * apart, 32, 4))
    a[...] = integers(2, 8, 8)
    b = integers(2, 8, 8)
    np.testing.assert_array_equal(kernel(NAIVE)(A=a, B=b).get(), (a.copy() @ b).get())


def test_matrices_of_c_that_meet_are_refused() -> None:
    memory = cp.zeros(2 * 64 * 64, "float32")
    c = cp.ndarray((2, 64, 64), "float32", memory.data, (4 * 64 * 63, 256, 4))
    with pytest.raises(CallError, match="C"):
        kernel(BATCHED)(A=integers(2, 64, 8), B=integers(2, 8, 64), C=c)
