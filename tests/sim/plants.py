"""Mistakes for emitted kernels: textual edits of the examples, and what a checked run finds."""

from __future__ import annotations

from dataclasses import dataclass

from gemmgen.calling.launches import Case

RAGGED = Case((35, 37, 43), "normal", 0.7, -1.0, 4)
UNSCALED = Case((35, 37, 43), "normal", 0.7, 0.0, 4)
RAGGED_IN_B = Case((35, 37, 44), "normal", 0.7, -1.0, 4)
"""Of A no vector along k is partly outside."""
WIDE = Case((130, 260, 37), "normal", 0.7, -1.0, 4)


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
STAGED = "cache_shared A[k, m] B[k, n] C[m, n]"
DOUBLE = "double_buffer A B"
GEMM = "gemm C[m, n] = A[m, k] * B[k, n]"

PLANTS = {
    "the barrier after the first tile dropped": Plant(
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
        "A_shared[next_stage][A_k][A_m] = A_next;",
        DOUBLE,
    ),
    "the barrier before the contraction dropped": Plant(
        "transposed", "__syncthreads();", "", "race", "A_shared[A_k][A_m] =", CACHED
    ),
    "the barrier after the contraction dropped": Plant(
        "transposed", "__syncthreads();", "", "race", "A_shared[A_k][A_m] =", CACHED, nth=2
    ),
    "the barrier among fragments dropped": Plant(
        "warp_tiled",
        "__syncthreads();",
        "",
        "race",
        "A_shared[next_stage]",
        "double_buffer A A.register B B.register",
        WIDE,
        nth=2,
    ),
    "the guard of a load dropped": Plant(
        "transposed",
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
        "vectorized",
        "j + VEC - 1 < cols",
        "j < cols",
        "out of bounds",
        "&X[(long long)i * ldx + j]",
        CACHED,
        RAGGED_IN_B,
    ),
    "the guard of a store dropped": Plant(
        "transposed",
        "if (m < M && n < N) {",
        "if (m < M) {",
        "out of bounds",
        "C[(long long)m",
        GEMM,
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
        "transposed",
        "B_shared[B_k][B_n] = k < K && n < N ? B[(long long)k * ldb + n] : 0.0f;",
        "if (k < K && n < N) B_shared[B_k][B_n] = B[(long long)k * ldb + n];",
        "never written",
        "B_shared[k][thread_n]",
        CACHED,
    ),
    "rows of a wide tile padded by one": Plant(
        "vectorized", "BM + A_PAD]", "BM + 1]", "misaligned", "&A_shared[stage][k]", "pad A by=4"
    ),
    "a wide load shifted by one": Plant(
        "vectorized",
        "&X[(long long)i * ldx + j]",
        "&X[(long long)i * ldx + j + 1]",
        "misaligned",
        "&X[(long long)i * ldx + j + 1]",
        CACHED,
    ),
    "some threads pass the barrier by": Plant(
        "transposed",
        "__syncthreads();",
        "if (tid < 32) __syncthreads();",
        "divergent barrier",
        "if (tid < 32) __syncthreads();",
        CACHED,
    ),
    "C read where beta is 0": Plant(
        "transposed",
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
        "A_shared[next_stage][A_k][A_m] = A_next;",
        DOUBLE,
    ),
    "a row of shared memory too few": Plant(
        "transposed",
        "A_shared[BK][BM]",
        "A_shared[BK - 1][BM]",
        "out of bounds",
        "A_shared[A_k][A_m] =",
        CACHED,
    ),
    "the wrong stage filled": Plant(
        "double_buffered",
        "next_stage = 1 - stage",
        "next_stage = stage",
        "race",
        "A_shared[next_stage][A_k][A_m] = A_next;",
        DOUBLE,
    ),
    "two owners of one element": Plant(
        "transposed",
        "C[(long long)m * ldc + n] = ",
        "C[(long long)m * ldc + n / 2] = ",
        "two owners",
        "C[(long long)m * ldc + n / 2] =",
        GEMM,
        UNSCALED,
    ),
    "two blocks for one tile": Plant(
        "transposed",
        "(blockIdx.x % blocks_n) * BN",
        "(blockIdx.x % blocks_n) * 0",
        "two owners",
        "C[(long long)m * ldc + n] =",
        GEMM,
        UNSCALED,
    ),
    "ld swapped in a load": Plant(
        "transposed", "m * lda + k", "m * ldb + k", "out of bounds", "A_shared[A_k][A_m] =", CACHED
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

ASYNC = "async_copy A B via=cp_async"
PLANTS |= {
    "one group too few waited for": Plant(
        "async_copy",
        "wait_group<STAGES - 2>",
        "wait_group<STAGES - 1>",
        "under way",
        "&A_frag[(k + 1) % 2]",
        ASYNC,
        WIDE,
        2,
    ),
    "one group too few waited for at the start": Plant(
        "async_copy",
        "wait_group<STAGES - 2>",
        "wait_group<STAGES - 1>",
        "under way",
        "&A_shared[0][0]",
        ASYNC,
        WIDE,
    ),
    "the wait for a tile dropped": Plant(
        "async_copy",
        "gg_wait_group<STAGES - 2>();",
        "",
        "under way",
        "&A_shared[stage",
        ASYNC,
        WIDE,
        2,
    ),
    "the barrier after the wait dropped": Plant(
        "async_copy", "__syncthreads();", "", "under way", "&A_shared[stage", ASYNC, WIDE, 2
    ),
    "the barrier before the wait": Plant(
        "async_copy",
        "gg_wait_group<STAGES - 2>();\n                __syncthreads();",
        "__syncthreads();\n                gg_wait_group<STAGES - 2>();",
        "race",
        "&A_shared[stage",
        ASYNC,
        WIDE,
    ),
    "a stage overwritten while it is read": Plant(
        "async_copy",
        "write_stage = stage > 0 ? stage - 1 : STAGES - 1",
        "write_stage = stage",
        "under way",
        "&A_frag[(k + 1) % 2][reg_m]",
        ASYNC,
        WIDE,
    ),
    "a group never committed": Plant(
        "async_copy", "gg_commit_group();", "", "under way", "&A_shared[stage", ASYNC, WIDE, 2
    ),
    "the last copies not waited for": Plant(
        "async_copy", "gg_wait_group<0>();", "", "not waited for", "&A_shared[", ASYNC, WIDE
    ),
    "the valid bytes of a piece rounded up": Plant(
        "async_copy",
        "(M - m < VEC ? M - m : VEC)",
        "VEC",
        "out of bounds",
        "&A[(long long)k * lda + m]",
        ASYNC,
        RAGGED,
    ),
    "the guard of a copy dropped": Plant(
        "async_copy",
        "k < K && n < N ?",
        "n < N ?",
        "out of bounds",
        "&B[(long long)k * ldb + n]",
        ASYNC,
        WIDE,
    ),
    "no zeros after the matrix": Plant(
        "async_copy",
        "copy_A_tile(A_shared[ahead]",
        "if (ahead * BK + A_k < K && tile_m + A_m < M) copy_A_tile(A_shared[ahead]",
        "never written",
        "&A_shared[",
        "cache_shared A[k, m] B[k, n]",
        RAGGED,
    ),
    "a copy's source shifted by one": Plant(
        "async_copy",
        "&A[(long long)k * lda + m]",
        "&A[(long long)k * lda + m + 1]",
        "misaligned",
        "&A[(long long)k * lda + m + 1]",
        ASYNC,
        WIDE,
    ),
    "a store to where a copy is under way": Plant(
        "async_copy",
        "gg_commit_group();",
        "gg_commit_group();\n        A_shared[(stage + 1) % STAGES][A_k][A_m] = 0.0f;",
        "under way",
        "A_shared[(stage + 1) % STAGES][A_k][A_m] = 0.0f;",
        ASYNC,
        WIDE,
        2,
    ),
    "the barrier before a slice is written again dropped": Plant(
        "staged_output",
        "++reg_m) {\n        __syncthreads();",
        "++reg_m) {",
        "race",
        "C_shared[",
        STAGED,
        WIDE,
    ),
    "the barrier before a slice is stored dropped": Plant(
        "staged_output",
        "        }\n        __syncthreads();\n\n        // store it",
        "        }\n\n        // store it",
        "race",
        "C_shared[",
        STAGED,
        WIDE,
    ),
    "a slice written a row further": Plant(
        "staged_output",
        "slice_m = thread_m / TM;",
        "slice_m = thread_m / TM + 1;",
        "out of bounds",
        "copy4(&C_shared[slice_m]",
        STAGED,
        WIDE,
    ),
    "a slice stored beyond the last row": Plant(
        "staged_output",
        "if (m < M) {\n                    copy4(&C[",
        "if (true) {\n                    copy4(&C[",
        "out of bounds",
        "target",
        STAGED,
        RAGGED,
    ),
    "a row stored beyond its end": Plant(
        "staged_output",
        "[C_n], n, N);",
        "[C_n]);",
        "out of bounds",
        "copy4(&C[(long long)m * ldc + n], &C_shared",
        STAGED,
        RAGGED,
    ),
}
"""Asynchronous copies: found whenever they land.  C by way of shared memory."""

WRONG_VALUES = {
    "the tail of K dropped": ("transposed", "tile_k < K;", "tile_k + BK <= K;", RAGGED),
    "a tile read transposed": (
        "transposed",
        "A_shared[k][thread_m]",
        "A_shared[thread_m][k]",
        RAGGED,
    ),
    "a swizzled tile read plain": (
        "swizzled",
        "(thread_m ^ (((k + 1) / 4) * 16))",
        "thread_m",
        WIDE,
    ),
    "a swizzled tile stored plain": ("swizzled", "A_m ^ ((A_k / 4) * 16)", "A_m", WIDE),
    "a slice stored as the next one": (
        "staged_output",
        "* TM + reg_m, n =",
        "* TM + (reg_m + 1) % TM, n =",
        WIDE,
    ),
    "the first slice stored alone": (
        "staged_output",
        "++reg_m) {\n        __syncthreads();",
        "++reg_m) {\n        if (reg_m > 0) break;\n        __syncthreads();",
        WIDE,
    ),
    "alpha dropped": ("transposed", "alpha * acc", "acc", RAGGED),
    "beta dropped": ("naive", "fmaf(beta, old", "fmaf(1.0f, old", RAGGED),
    "the sum rounded twice": (
        "transposed",
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
