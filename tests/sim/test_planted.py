"""Mistakes planted in emitted kernels are found, at their line and with their directive."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from emitted_kernels import checked, complaint, emitted, planted
from handwritten_kernels import Case

from gemmgen.sim.failures import CompileFailure, KernelFault
from gemmgen.sim.memory import sparse
from gemmgen.sim.process import ORDERS
from gemmgen.sim.run import Argument

RAGGED = Case(35, 37, 45, 0.7, -1.0, 4)
UNSCALED = Case(35, 37, 45, 0.7, 0.0, 4)
SHALLOW = Case(35, 37, 5, 0.7, -1.0, 4)
WIDE = Case(130, 260, 37, 0.7, -1.0, 4)


@dataclass(frozen=True)
class Plant:
    """``old`` becomes ``new`` in an example's text; a run then finds ``kind``, in a line that has
    ``at`` and under a comment that cites ``directive``."""

    example: str
    old: str
    new: str
    kind: str
    at: str
    directive: str
    case: Case = RAGGED
    nth: int = 1


CACHED = "cache_shared A[k, m] B[k, n]"
DOUBLE = "double_buffer A B"
GEMM = "gemm C[m, n] = A[m, k] * B[k, n]"

PLANTS = {
    "the barrier behind the first tile dropped": Plant(
        "double_buffered",
        "int stage = 0;\n    __syncthreads();",
        "int stage = 0;",
        "race",
        "A_shared[0][A_k][A_m] =",
        CACHED,
    ),
    "the barrier in the loop dropped": Plant(
        "double_buffered",
        "B_next;\n        __syncthreads();",
        "B_next;",
        "race",
        "A_shared[fill][A_k][A_m] = A_next;",
        DOUBLE,
    ),
    "the barrier before the contraction dropped": Plant(
        "tiled", "__syncthreads();", "", "race", "A_shared[A_k][A_m] =", CACHED
    ),
    "the barrier behind the contraction dropped": Plant(
        "tiled", "__syncthreads();", "", "race", "A_shared[A_k][A_m] =", CACHED, nth=2
    ),
    "the barrier among fragments dropped": Plant(
        "warp_tiled",
        "__syncthreads();",
        "",
        "race",
        "A_shared[fill]",
        "double_buffer A A.register B B.register",
        WIDE,
        nth=2,
    ),
    "the guard of a load dropped": Plant(
        "tiled",
        "m < M && k < K ? A[",
        "k < K ? A[",
        "out of bounds",
        "A_shared[A_k][A_m] =",
        CACHED,
    ),
    "the guard of an early load dropped": Plant(
        "double_buffered",
        "B_next = k < K && n < N ?",
        "B_next = k < K ?",
        "out of bounds",
        "B_next =",
        DOUBLE,
    ),
    "the guard of a wide load too weak": Plant(
        "vectorized", "n + 3 < N", "n < N", "out of bounds", "&B[(long long)k * ldb + n]", CACHED
    ),
    "the guard of a store dropped": Plant(
        "tiled", "if (m < M && n < N) {", "if (m < M) {", "out of bounds", "C[(long long)m", GEMM
    ),
    "the guard of a row stored dropped": Plant(
        "fused",
        "if (m < M) {",
        "if (true) {",
        "out of bounds",
        "C[(long long)m * ldc + n] =",
        "fuse_epilogue relu(acc + bias[n])",
    ),
    "the zero fill dropped": Plant(
        "tiled",
        "B_shared[B_k][B_n] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;",
        "if (k < K && n < N) B_shared[B_k][B_n] = B[(long long)k * ldb + n];",
        "never written",
        "B_shared[k][thread_n]",
        CACHED,
    ),
    "rows of a wide tile padded by one": Plant(
        "vectorized", "BM + 4]", "BM + 1]", "misaligned", "&A_shared[stage][k]", "pad A by=4"
    ),
    "a wide load shifted by one": Plant(
        "vectorized",
        "&B[(long long)k * ldb + n]",
        "&B[(long long)k * ldb + n + 1]",
        "misaligned",
        "&B[(long long)k * ldb + n + 1]",
        CACHED,
    ),
    "some threads pass the barrier by": Plant(
        "tiled",
        "__syncthreads();",
        "if (tid < 32) __syncthreads();",
        "divergent barrier",
        "if (tid < 32) __syncthreads();",
        CACHED,
    ),
    "C read where beta is 0": Plant(
        "tiled",
        "beta != 0.0f ? C[(long long)m * ldc + n] : 0.0f",
        "C[(long long)m * ldc + n]",
        "never written",
        "const float old =",
        GEMM,
        UNSCALED,
    ),
    "one stage of shared memory for two": Plant(
        "double_buffered",
        "A_shared[2]",
        "A_shared[1]",
        "out of bounds",
        "A_shared[fill][A_k][A_m] = A_next;",
        DOUBLE,
    ),
    "a row of shared memory too few": Plant(
        "tiled",
        "A_shared[BK][BM]",
        "A_shared[BK - 1][BM]",
        "out of bounds",
        "A_shared[A_k][A_m] =",
        CACHED,
    ),
    "the wrong stage filled": Plant(
        "double_buffered",
        "fill = 1 - stage",
        "fill = stage",
        "race",
        "A_shared[fill][A_k][A_m] = A_next;",
        DOUBLE,
    ),
    "two owners of one element": Plant(
        "tiled",
        "C[(long long)m * ldc + n] = ",
        "C[(long long)m * ldc + n / 2] = ",
        "two owners",
        "C[(long long)m * ldc + n / 2] =",
        GEMM,
        UNSCALED,
    ),
    "two blocks for one tile": Plant(
        "tiled",
        "(blockIdx.x % blocks_n) * BN",
        "(blockIdx.x % blocks_n) * 0",
        "two owners",
        "C[(long long)m * ldc + n] =",
        GEMM,
        UNSCALED,
    ),
    "ld swapped in a load": Plant(
        "tiled", "m * lda + k", "m * ldb + k", "out of bounds", "A_shared[A_k][A_m] =", CACHED
    ),
    "an input written": Plant(
        "naive",
        "C[(long long)m * ldc + n] =",
        "const_cast<float *>(B)[n] = 0.0f;\n    C[(long long)m * ldc + n] =",
        "out of bounds",
        "const_cast<float *>(B)[n] = 0.0f;",
        GEMM,
    ),
    "a fragment too short": Plant(
        "fused", "A_frag[TM]", "A_frag[TM - 1]", "out of bounds", "A_frag[reg_m] =", "tile"
    ),
}

WRONG_VALUES = {
    "the tail of K dropped": ("tiled", "tile_k < K;", "tile_k + BK <= K;", RAGGED),
    "a tile read transposed": ("tiled", "A_shared[k][thread_m]", "A_shared[thread_m][k]", RAGGED),
    "alpha dropped": ("tiled", "alpha * acc", "acc", RAGGED),
    "beta dropped": ("naive", "fmaf(beta, old", "fmaf(1.0f, old", RAGGED),
    "the sum rounded twice": (
        "tiled",
        "acc = fmaf(A_shared[k][thread_m], B_shared[k][thread_n], acc)",
        "acc += A_shared[k][thread_m] * B_shared[k][thread_n]",
        RAGGED,
    ),
    "zeros written": ("naive", "fmaf(beta, old, alpha * acc)", "0.0f", RAGGED),
    "the old C written": ("naive", "fmaf(beta, old, alpha * acc)", "old", RAGGED),
    "NaN written": ("naive", "fmaf(beta, old, alpha * acc)", "0.0f / 0.0f", RAGGED),
    "nothing written": ("fused", "if (m < M) {", "if (m < 0) {", RAGGED),
    "a tile loaded late": ("double_buffered", "next_k = tile_k + BK", "next_k = tile_k", RAGGED),
}


@pytest.mark.parametrize("name", PLANTS)
def test_finds_at_its_line(name: str) -> None:
    plant = PLANTS[name]
    changed = planted(emitted(plant.example).text, plant.old, plant.new, plant.nth)
    kernel = checked(plant.example, changed)
    lines = changed.split("\n")
    for order in ORDERS:
        case = Case(*list(vars(plant.case).values())[:-1], order=order)
        with pytest.raises(KernelFault) as raised:
            complaint(plant.example, kernel, case)
        found = [each for each in raised.value.findings if each.kind == plant.kind]
        told = [
            each
            for each in found
            if any(plant.at in " ".join(lines[line - 1 : line + 1]) for line in each.lines)
            and any(plant.directive in directive for directive in each.directives)
        ]
        assert told, str(raised.value)


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_finds_by_the_values(name: str) -> None:
    example, old, new, case = WRONG_VALUES[name]
    changed = emitted(example).text.replace(old, new)
    assert changed != emitted(example).text
    assert complaint(example, checked(example, changed), case) is not None


OFFSETS = {
    "A": "A[(long long)m * lda + k]",
    "B": "B[(long long)k * ldb + n]",
    "C": "C[(long long)m * ldc + n] =",
}
PITCH = 2**30


def spanning() -> dict[str, Argument]:
    """Three rows a matrix, more than 2^31 elements apart from first to last."""
    a, b = np.full((3, 3), 2, np.float32), np.full((3, 4), 3, np.float32)
    matrices = {"A": sparse(a, PITCH), "B": sparse(b, PITCH)}
    matrices["C"] = sparse(np.ones((3, 4), np.float32), PITCH)
    numbers = {"M": 3, "N": 4, "K": 3, "alpha": 1.0, "beta": 1.0}
    return matrices | numbers | dict.fromkeys(("lda", "ldb", "ldc"), PITCH)


@pytest.mark.parametrize("name", ["naive", "double_buffered", "warp_tiled"])
def test_offsets_beyond_an_int_are_right(name: str) -> None:
    arguments = spanning()
    checked(name).run(arguments)
    assert isinstance(arguments["C"], np.ndarray) and (arguments["C"] == 19).all()


@pytest.mark.parametrize("tensor", OFFSETS)
def test_finds_an_offset_of_32_bits(tensor: str) -> None:
    offset = OFFSETS[tensor]
    changed = emitted("naive").text.replace(offset, offset.replace("(long long)", ""))
    with pytest.raises(KernelFault) as raised:
        checked("naive", changed).run(spanning())
    (finding,) = raised.value.findings
    assert finding.kind == "arithmetic"
    assert finding.detail == "1073741824 * 2 does not fit 'int'"
    assert f"{tensor}[m * ld" in finding.access.text or "B[k * ldb" in finding.access.text


@pytest.mark.parametrize(
    ("example", "old"),
    [
        ("vectorized", "alignas(16) float A_shared"),
        ("vectorized", "alignas(16) float out"),
        ("warp_tiled", "alignas(16) extern"),
    ],
)
def test_finds_a_missing_alignment(example: str, old: str) -> None:
    changed = planted(emitted(example).text, old, old.replace("16", "8"))
    with pytest.raises(CompileFailure, match=r"accessed by 16 bytes, but its declaration lacks"):
        checked(example, changed)


def test_finds_shared_memory_beyond_what_the_interface_says() -> None:
    changed = planted(emitted("double_buffered").text, "B_shared[2]", "B_shared[3]")
    with pytest.raises(KernelFault, match="declares 20736 bytes of shared memory, its interface"):
        complaint("double_buffered", checked("double_buffered", changed), RAGGED)


def test_finds_a_variable_never_set_behind_a_product_with_zero() -> None:
    changed = planted(emitted("vectorized").text, "e < 4", "e < 3")
    with pytest.raises(KernelFault, match=r"^never written: .* reads A_shared"):
        complaint("vectorized", checked("vectorized", changed), RAGGED)


def test_finds_launch_bounds_that_are_not_the_block() -> None:
    changed = planted(emitted("tiled").text, "THREADS = BM * BN", "THREADS = BM + BN")
    with pytest.raises(CompileFailure, match="the launch bounds are the threads of a block"):
        checked("tiled", changed)


def test_a_finding_names_both_threads_and_the_element() -> None:
    plant = PLANTS["the barrier in the loop dropped"]
    changed = planted(emitted(plant.example).text, plant.old, plant.new)
    with pytest.raises(KernelFault) as raised:
        complaint(plant.example, checked(plant.example, changed), RAGGED)
    first = raised.value.findings[0]
    assert (first.kind, first.element, first.other is not None) == (
        "race",
        "A_shared[0, 0, 0]",
        True,
    )
    assert str(raised.value).startswith(
        "race: thread (1, 0) reads A_shared[0, 0, 0] in block 0, at line "
    )
    assert "thread (0, 0) writes it, with no barrier between, at line " in str(raised.value)


def test_the_kernel_serves_again_after_findings() -> None:
    plant = PLANTS["the wrong stage filled"]
    changed = planted(emitted(plant.example).text, plant.old, plant.new)
    kernel = checked(plant.example, changed)
    for _, order in itertools.product(range(2), ORDERS):
        with pytest.raises(KernelFault, match=r"^race"):
            complaint(plant.example, kernel, Case(5, 5, 64, order=order))
