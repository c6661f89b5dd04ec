"""``unroll`` in machine code: as many multiply-adds in the loop as it says, and constant stages."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import compiler, sass, sass_loops
from gemmgen.pipeline import compile_source

from .test_sass import needs_tool

RING = """
gemm            C[m, n] = A[k, m] * B[k, n]
tile            m=128 n=128 k=8
cache_shared    A B
register_block  m=8 n=8
vectorize       A B C width=4
double_buffer   A B stages=4
double_buffer   A.register B.register
async_copy      A B via=cp_async
"""


def main_loop(text: str) -> sass.Code:
    cubin = compiler.compile_text(compile_source(Source(text)).text, "sm_90").cubin
    body = sass_loops.main_loop(sass.disassemble(cubin))
    assert body is not None
    return body


def others(code: sass.Code) -> int:
    return len(code) - sass.count(code, "FFMA")


@pytest.mark.proof
@needs_tool
@pytest.mark.parametrize("steps", [2, 4, 8])
def test_a_step_is_64_multiply_adds(steps: int) -> None:
    assert sass.count(main_loop(f"{RING}unroll k={steps}"), "FFMA") == 64 * steps


@pytest.mark.proof
@needs_tool
def test_rounds_spare_the_arithmetic_of_stages() -> None:
    one, round_ = main_loop(RING), main_loop(f"{RING}unroll tile_k=4")
    assert sass.count(round_, "FFMA") == 4 * sass.count(one, "FFMA")
    assert others(round_) < 0.9 * 4 * others(one)
