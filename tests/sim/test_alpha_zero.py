"""alpha = 0: as in BLAS, A and B are not read, whatever they hold."""

import numpy as np
import pytest

import gemmgen
from gemmgen.api.kernels import compile_any

PLAIN = "gemm C[m, n] = A[m, k] * B[k, n]\n"
SPLIT = "tile m=32 n=32 k=8\ncache_shared A B\nsplit_k parts=2\n"
BATCHED = "gemm C[b, m, n] = A[b, m, k] * B[k, n]\n"


@pytest.mark.by_default("plain", "batched")
@pytest.mark.parametrize("schedule", [PLAIN, SPLIT, BATCHED], ids=["plain", "split", "batched"])
def test_factors_are_not_read(schedule: str) -> None:
    batch = (2,) if schedule == BATCHED else ()
    a, b = np.full((*batch, 5, 7), np.nan, np.float32), np.full((7, 9), np.inf, np.float32)
    c = np.ones((*batch, 5, 9), np.float32)
    kernel = gemmgen.compile(schedule, device="cpu")
    assert (kernel(A=a, B=b, C=c, alpha=0.0, beta=3.0) == 3).all()
    assert np.isnan(kernel(A=a, B=b, C=c, alpha=1.0)).all()


@pytest.mark.parametrize(
    ("schedule", "product"),
    [
        (PLAIN, ("alpha", "K")),
        ("fuse_epilogue relu(acc * alpha + bias[n])\n", ("alpha", "K")),
        ("fuse_epilogue alpha * acc + acc\n", None),
        ("fuse_epilogue acc + bias[n]\n", None),
        (PLAIN + "assume N == K\n", None),
        (PLAIN + "assume ldc == K\n", None),
        (PLAIN + "assume lda == K\n", ("alpha", "K")),
    ],
)
def test_product_is_skipped_only_if_nothing_else_needs_it(
    schedule: str, product: tuple[str, str] | None
) -> None:
    assert compile_any(schedule).interface.product == product


def test_launcher_and_header_say_it() -> None:
    text = gemmgen.emit_cuda(PLAIN)
    assert "if (alpha == 0) K = 0;" in text
    assert "K = 0 if alpha == 0: as in BLAS, A and B are not read" in text
    assert "K = 0" not in gemmgen.emit_cuda("fuse_epilogue relu(acc)\n")
