"""The hand-written kernels are right, bit for bit, and mutants of them are found out."""

from __future__ import annotations

import itertools

import pytest
from handwritten_kernels import NAMES, check, text

from gemmgen.calling.launches import ORDERS, Case
from gemmgen.sim.failures import KernelFault

SHAPES = (
    (1, 1, 1),
    (2, 3, 5),
    (32, 33, 30),
    (35, 35, 35),
    (127, 131, 257),
    (128, 128, 128),
    (130, 260, 40),
)
SCALARS = ((1, 0), (0, 0), (1, 1), (-1, 1), (0.7, 0.7), (0, -1), (0.7, -1), (-1, 0.7))


@pytest.mark.by_default("1x1x1-naive", "35x35x35-split_k", "127x131x257-split_k")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_equals_the_reference_in_every_bit(name: str, shape: tuple[int, int, int]) -> None:
    small = shape[0] < 100
    scalars = SCALARS if small else SCALARS[4:6]
    for i, (alpha, beta) in enumerate(scalars):
        case = Case(shape, "normal", alpha, beta, pad=(0, 1, 4, 7)[i % 4], order=ORDERS[i % 3])
        assert check(name, case).text().startswith("equal"), case


@pytest.mark.by_default("naive", "vectorized")
@pytest.mark.parametrize("name", NAMES)
def test_no_k_leaves_the_epilogue_of_zero(name: str) -> None:
    for alpha, beta in ((1, 0), (0.7, -1)):
        case = Case((33, 35, 0), "normal", alpha, beta, pad=5)
        assert check(name, case).text().startswith("equal")


@pytest.mark.by_default("naive", "vectorized", "split_k")
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_output_launches_nothing(name: str) -> None:
    assert check(name, Case((0, 5, 3), "normal")).equal
    assert check(name, Case((5, 0, 3), "normal")).equal


NAIVE_A = "A[static_cast<long long>(m) * lda + k]"
NAIVE_B = "B[static_cast<long long>(k) * ldb + n]"
NAIVE_FMA = f"acc = fmaf({NAIVE_A}, {NAIVE_B}, acc)"

MUTANTS = {
    "naive reads a k too many": ("naive", "k < K; ++k", "k <= K; ++k"),
    "naive writes a row too many": ("naive", "m >= M ||", "m > M ||"),
    "naive writes a column too many": ("naive", "n >= N)", "n > N)"),
    "naive takes lda for ldb": ("naive", "k) * ldb", "k) * (lda + 0 * ldb)"),
    "naive loses alpha": ("naive", "fmaf(beta, c, alpha * acc)", "fmaf(beta, c, acc)"),
    "naive reads C for beta 0": ("naive", "beta == 0.0f ? alpha * acc : fmaf", "fmaf"),
    "naive rounds twice": ("naive", NAIVE_FMA, f"acc += {NAIVE_A} * {NAIVE_B}"),
    "uncoalesced swaps m and n": ("uncoalesced", "m) * ldc + n", "n) * ldc + m"),
    "tiled lacks the first barrier": ("tiled", "0.0f;\n    __syncthreads();", "0.0f;"),
    "tiled lacks the second barrier": ("tiled", "    }\n    __syncthreads();", "    }"),
    "tiled loses the tail of k": ("tiled", "tile_k < K; tile_k", "tile_k + TILE <= K; tile_k"),
    "tiled reads past a row of A": ("tiled", "m < M && tile_k + x < K", "m < M"),
    "tiled reads past the rows of B": ("tiled", "tile_k + y < K && n < N", "n < N"),
    "padded reads A untransposed": ("padded", "A_shared[k][y]", "A_shared[y][k]"),
    "double_buffered overwrites its stage": ("double_buffered", "    stage ^= 1;\n", ""),
    "double_buffered starts without a barrier": ("double_buffered", "(y);\n  __sync", "(y);\n //"),
    "double_buffered lacks its barrier": ("double_buffered", "next;\n    __sync", "next;\n //"),
    "double_buffered loads a tile late": (
        "double_buffered",
        "load_a(tile_k + TILE",
        "load_a(tile_k",
    ),
    "register_blocked lacks a barrier": (
        "register_blocked",
        "b_next);\n    __sync",
        "b_next);\n //",
    ),
    "register_blocked writes a row too many": ("register_blocked", "m >= M ||", "m > M ||"),
    "register_blocked leaves before a barrier": (
        "register_blocked",
        "  float acc",
        "  if (block_m + thread_m >= M) return;\n  float acc",
    ),
    "vectorized lacks its barrier": ("vectorized", "next);\n    __sync", "next);\n //"),
    "vectorized reads past a row": ("vectorized", "? K - k : 0", "? 4 : 0"),
    "vectorized stores past a row": ("vectorized", "n + 4 <= N", "n < N"),
    "vectorized stages overlap": ("vectorized", "A_shared[2][BK]", "A_shared[1][BK]"),
    "vectorized has rows in its padding": ("vectorized", "store(stage, a", "store(0, a"),
}


def mutated(name: str, old: str, new: str) -> str:
    original = text(name)
    assert old in original
    return original.replace(old, new, 1)


@pytest.mark.by_default(
    "naive reads C for beta 0",
    "naive rounds twice",
    "tiled loses the tail of k",
    "tiled lacks the second barrier",
    "tiled reads past a row of A",
)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_finds_the_mutant(mutant: str) -> None:
    name, old, new = MUTANTS[mutant]
    changed = mutated(name, old, new)
    cases = ((35, 37, 45, 0.7, 0.0, 4), (33, 34, 35, 0.7, -1, 4))
    for values, order in itertools.product(cases, ORDERS):
        try:
            if not check(name, Case(values[:3], "normal", *values[3:], order=order), changed).equal:
                return
        except KernelFault:
            return
    pytest.fail("no run shows the mutant")


def test_tells_which_threads_diverge_at_a_barrier() -> None:
    changed = mutated("tiled", "    __syncthreads();\n\n", "    if (x < 7) __syncthreads();\n\n")
    line = 1 + changed[: changed.index("if (x < 7)")].count("\n")
    with pytest.raises(KernelFault, match=rf"thread \(0, 0\) waits at line {line}, but thread \(7"):
        check("tiled", Case((5, 5, 5), "normal"), changed)


def test_tells_which_threads_left_before_a_barrier() -> None:
    changed = mutated("tiled", "  float acc", "  if (n >= N) return;\n  float acc")
    with pytest.raises(KernelFault, match=r"thread \(5, 0\) has left the kernel"):
        check("tiled", Case((5, 5, 5), "normal"), changed)
