"""A trial's calls take little time."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.trial_calls import MATRIX_WORK, cases
from gemmgen.pipeline import compile_source
from gemmgen.proof.cases import work

DEEP = """
gemm C[b, m, n] = A[b, m, k] * B[n, k]
assume K == N
tile m=128 n=32 k=96
cache_shared A[m, k] B[n, k]
register_block m=4 n=4
split_k parts=6
"""
"""K is as large as all parts need, and so is N; a call once took longer than is allowed."""


@pytest.mark.parametrize("seed", range(4))
def test_calls_are_of_little_work_even_if_k_is_n(seed: int) -> None:
    emitted = compile_source(Source(DEEP))
    shapes = [case.shape for case in cases(emitted, Dice(seed))]
    assert max(work(emitted, shape) for shape in shapes) <= MATRIX_WORK
    assert all(n == k for _, n, k, _ in shapes)
