"""The shapes with which ``suggest`` is fitted and evaluated."""

from __future__ import annotations

import math
import random

LOW = (
    *((4096, 1, 4096), (64, 4096, 4096), (128, 4096, 4096), (4096, 128, 4096), (1, 4096, 4096)),
    *((768, 768, 768), (2048, 50257, 768), (333, 777, 1555), (256, 256, 16384)),
)
"""Hard cases: shapes at which ``suggest`` was slow in an earlier version."""
GPT2 = ((1024, 2304, 768), (1024, 768, 768), (1024, 3072, 768), (1024, 768, 3072))
NN, NT, TN, TT = ORDERS = (
    "C[m, n] = A[m, k] * B[k, n]",
    "C[m, n] = A[m, k] * B[n, k]",
    "C[m, n] = A[k, m] * B[k, n]",
    "C[m, n] = A[k, m] * B[n, k]",
)
BATCHES = (
    ("C[b, m, n] = A[b, m, k] * B[b, n, k]", (512, 512, 64, 24)),
    ("C[b, m, n] = A[b, m, k] * B[b, k, n]", (512, 64, 512, 24)),
)
Case = tuple[str, tuple[int, ...]]


def known() -> list[Case]:
    """Users' shapes."""
    found: list[Case] = [(NN, shape) for shape in LOW]
    found += [(NN, shape) for shape in GPT2]
    found += [(NT, (1024, 50257, 768)), *BATCHES]
    for size in (128, 256, 512, 1024, 2048):
        found += [(order, (size, size, size)) for order in ORDERS]
    return found


def drawn(seed: int, count: int) -> list[Case]:
    """Random shapes, each with one storage order."""
    rng = random.Random(seed)

    def extent() -> int:
        return min(10_000, max(1, round(math.exp(rng.uniform(0.0, math.log(10_000))))))

    return [(ORDERS[rng.randrange(4)], (extent(), extent(), extent())) for _ in range(count)]


def gemm_of(last: str, letters: int) -> str:
    """The line whose A and B have these last letters; with four extents, one is a batch."""
    batch = "b, " if letters == 4 else ""
    a, b = ("m, k" if last[0] == "k" else "k, m"), ("k, n" if last[1] == "n" else "n, k")
    return f"C[{batch}m, n] = A[{batch}{a}] * B[{batch}{b}]"
