"""The checker is tested first: broken texts are seen, each with a sentence on what is wrong."""

from __future__ import annotations

import pytest

from gemmgen.proof import cpu

from .subjects import DOUBLE, NAIVE, TILED, mutant, without_the_last_barrier

RESULT = "fmaf(beta, old, alpha * acc)"
STORE = f"C[(long long)m * ldc + n] = {RESULT};"


MUTANTS = {
    "nothing is written": (NAIVE, STORE, f"if (K < 0) {STORE}", "never written"),
    "zeros are written": (NAIVE, RESULT, f"0.0f * {RESULT}", "wrong bits: [0, 0] is"),
    "NaN is written": (NAIVE, RESULT, f'{RESULT} * __builtin_nanf("")', "NaN in one"),
    "alpha is dropped": (NAIVE, "alpha * acc", "(K < 0 ? alpha : 1.0f) * acc", "alpha=0"),
    "beta is dropped": (NAIVE, "fmaf(beta,", "fmaf(K < 0 ? beta : 0.0f,", "beta="),
    "C is read though beta is 0": (NAIVE, "beta != 0.0f ?", "K >= 0 ?", "beta=0"),
    "A is written": (NAIVE, STORE, f"{STORE} const_cast<float *>(A)[0] = 1.0f;", "A"),
    "padding is written": (
        NAIVE,
        STORE,
        f"{STORE} if (n == N - 1) C[(long long)m * ldc + N] = 0.0f;",
        "out of bounds: thread (0, 0) writes C[1, 0]",
    ),
    "leading dimensions are swapped": (
        NAIVE,
        "* ldb",
        "* (K < 0 ? ldb : lda)",
        "out of bounds: thread (2, 1) reads B[5, 2]",
    ),
    "a guard lets a row too many in": (
        TILED,
        "if (m < M",
        "if (m <= M",
        "out of bounds: thread (0, 1) writes C",
    ),
    "the tail of K is lost": (TILED, "tile_k < K;", "tile_k + BK <= K;", "[0, 0] is 0.0"),
    "the first barrier is dropped": (
        TILED,
        "__syncthreads();",
        "",
        "race: thread (1, 0) writes A_shared",
    ),
    "a stage is off by one": (
        DOUBLE,
        "next_stage = 1 - stage",
        "next_stage = stage",
        "(double_buffer A B)",
    ),
    "a reader forgets the pad": (
        TILED,
        "A_shared[k][thread_m]",
        "(&A_shared[0][0])[k * BM + thread_m]",
        "never written: thread (0, 0) reads A_shared[0, 16]",
    ),
    "a row is skipped": (NAIVE, "if (m >= M ||", "if (m == 7 || m >= M ||", "never written"),
    "it gives a warning": (NAIVE, STORE, f"{STORE} float unused;", "g++ does not take the text"),
    "it traps": (NAIVE, STORE, f"{STORE} __builtin_trap();", "signal"),
}


@pytest.mark.by_default("the tail of K is lost", "the first barrier is dropped", "NaN is written")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_seen(name: str):
    schedule, before, after, message = MUTANTS[name]
    outcome = cpu.check(mutant(schedule, before, after))
    assert outcome.status == "failed"
    assert message in outcome.detail


def test_a_dropped_last_barrier_is_seen():
    outcome = cpu.check(without_the_last_barrier(TILED))
    assert outcome.status == "failed" and "threads " in outcome.detail
