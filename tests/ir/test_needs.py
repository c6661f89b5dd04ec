"""What a program needs of an architecture follows from its types, copies and atoms."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.needs import first_architecture, needs
from gemmgen.pipeline import compile_source

TILED = "tile m=32 n=32 k=32\ncache_shared A B\n"
WIDE = "vectorize A.global B.global width=8\n"
COPIED = f"{TILED}{WIDE}double_buffer A B stages=3\nasync_copy A B via=cp_async\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TILED, set()),
        (f"dtype A=f16 B=f16\n{TILED}{WIDE}double_buffer A B\n", set()),
        (f"dtype C=bf16\n{TILED}", {"bf16"}),
        (f"dtype bias=bf16\n{TILED}fuse_epilogue acc + bias[n]\n", {"bf16"}),
        (f"dtype A=f16 B=f16\n{COPIED}", {"cp_async"}),
        (f"dtype A=bf16 B=bf16\n{COPIED}", {"bf16", "cp_async"}),
    ],
)
def test_a_program_needs_what_it_uses(text: str, wanted: set[str]) -> None:
    gemm = "gemm C[m, n] = A[m, k] * B[k, n]\ntarget sm_80\n"
    program = compile_source(Source(gemm + text)).program
    assert needs(program) == wanted
    assert first_architecture(program) == (80 if wanted else 0)
