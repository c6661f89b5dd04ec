"""Counts of a launch equal those that the emitted text itself reports, compiled by g++."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.count import count_launch
from gemmgen.analyze.explain import traffic_of
from gemmgen.analyze.launch_arguments import Shape, arguments_of
from gemmgen.base.source import Source
from gemmgen.language import parse_schedule

from .instrument import build, build_counter, counts

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

BLOCKED = """
tile m=32 n=64 k=8
cache_shared A[k, m] B[k, n]
register_block m=4 n=8
"""

SCHEDULES = {
    "naive": "gemm C[m, n] = A[m, k] * B[k, n]",
    "uncoalesced, A transposed": "gemm C[m, n] = A[k, m] * B[k, n]\nbind x=m y=n",
    "tiled": "tile m=16 n=32 k=16\ncache_shared A[k, m] B[k, n]\npad A by=1",
    "both transposed": "gemm C[m, n] = A[k, m] * B[n, k]\ntile m=32 n=16 k=16\n"
    "cache_shared A[k, m] B[k, n]\nregister_block m=2 n=2",
    "register_blocked": BLOCKED + "pad A by=1\ndouble_buffer A B\nfuse_epilogue relu(acc+bias[n])",
    "vectorized": BLOCKED + "vectorize A B C width=4\npad A by=4\ndouble_buffer A B",
    "vectorized by two": BLOCKED + "vectorize A B C width=2\npad A by=2",
    "C transposed": "gemm C[n, m] = A[m, k] * B[k, n]" + BLOCKED + "vectorize A B C width=4",
    "rounds of two tiles": BLOCKED + "double_buffer A B\nunroll k=2 tile_k=2",
    "warp_tiled": "tile m=64 n=64 k=16\ncache_shared A[k, m] B[k, n]\nwarp_tile m=32 n=32\n"
    "register_block m=4 n=8\nvectorize A B C width=4\npad A by=4\n"
    "double_buffer A B A.register B.register\nraster group=2",
    "f16, eight at a time": "dtype A=f16 B=f16 C=f16\ntile m=64 n=64 k=8\n"
    "cache_shared A[k, m] B\nregister_block m=8 n=8\nvectorize A B C width=8",
    "f16 by two, bf16 one by one": "dtype A=f16 B=bf16 C=bf16\n" + BLOCKED + "vectorize A width=2\n"
    "pad A by=2\ndouble_buffer A B",
    "f16 and f32": "dtype A=f16\n" + BLOCKED + "vectorize A B C width=4\npad A by=4",
    "bf16, naive": "dtype A=bf16 B=bf16 C=f16\nfuse_epilogue acc + bias[n]",
    "f64": "dtype A=f64 B=f64 C=f64 acc=f64\n" + BLOCKED + "vectorize A B C width=2\npad A by=2\n"
    "double_buffer A B",
}
SCHEDULES |= {
    "async_copy": "gemm C[m, n] = A[k, m] * B[k, n]\ntile m=64 n=64 k=16\ncache_shared A B\n"
    "register_block m=4 n=8\nvectorize A B C width=4\ndouble_buffer A B stages=4\n"
    "double_buffer A.register B.register\nasync_copy A B via=cp_async",
    "async_copy of f16": "dtype A=f16 B=f16\ntile m=32 n=64 k=16\ncache_shared A B\n"
    "register_block m=2 n=4\nvectorize A.global width=8\nvectorize B.global width=4\n"
    "double_buffer A B\nasync_copy A B via=cp_async",
    "async_copy by two and one": "tile m=32 n=32 k=8\ncache_shared A[k, m] B\n"
    "register_block m=2 n=2\nvectorize B.global width=2\ndouble_buffer A B stages=3\n"
    "async_copy A B via=cp_async",
}
SHAPES: tuple[Shape, ...] = ((64, 64, 32), (71, 67, 45), (5, 130, 19))


ORDERS = {
    f"{c} = {a} * {b}": f"gemm {c} = {a} * {b}{BLOCKED}vectorize A.global B.global C width=4"
    for c in ("C[m, n]", "C[n, m]")
    for a in ("A[m, k]", "A[k, m]")
    for b in ("B[k, n]", "B[n, k]")
}
BATCHES = {
    "batched, B shared": "gemm C[b, m, n] = A[b, m, k] * B[k, n]" + BLOCKED + "raster group=2",
    "attention scores": "gemm C[b, h, m, n] = A[b, h, m, k] * B[b, h, n, k]"
    + BLOCKED
    + "vectorize A.shared C width=4\nfuse_epilogue acc * scale[h] + bias[b, n]",
    "a batch between rows": "gemm C[m, b, n] = A[m, b, k] * B[b, k, n]\n",
}
ALL = SCHEDULES | ORDERS | BATCHES


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_counter(tmp_path_factory.mktemp("counter"))


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", ALL)
def test_counts_are_those_of_the_emitted_text(name: str, counter: Path, tmp_path: Path) -> None:
    kernel = compile_kernel(parse_schedule(Source(ALL[name])))
    program = build(kernel.emitted, counter, tmp_path)
    batches = (3, 2)[: len(kernel.program.problem.batch)]
    for matrix in SHAPES:
        shape, beta = (*matrix, *batches), float(matrix == SHAPES[1])
        values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape, beta=beta)
        found = {
            (t.buffer, t.write): (
                t.counts.elements,
                t.counts.requests,
                t.counts.sectors,
                t.counts.lines,
                t.counts.phases,
                t.counts.wavefronts,
                t.counts.ways,
            )
            for t in traffic_of(count_launch(kernel.lowered, values))
        }
        assert found == counts(program, kernel.emitted, values), shape
