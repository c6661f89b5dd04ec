"""Small kernels that between them have every function and every line of a launcher."""

from __future__ import annotations

import functools

from gemmgen.base.source import Source
from gemmgen.pipeline import Emitted, compile_source

SCHEDULES = {
    "vectorized": """\
tile            m=32 n=64 k=8
cache_shared    A[k, m] B[k, n]
register_block  m=4 n=4
vectorize       A B C width=4
fuse_epilogue   relu(acc + bias[n])
""",
    "warp_tiled": """\
gemm            C[n, m] = A[k, m] * B[n, k]
tile            m=32 n=32 k=8
cache_shared    A B[k, n]
warp_tile       m=16 n=32
register_block  m=4 n=4
vectorize       A.global width=2
""",
    "async_copy": """\
tile            m=64 n=64 k=32
cache_shared    A B
register_block  m=4 n=4
vectorize       A.global B.global C width=4
double_buffer   A B stages=4
async_copy      A B via=cp_async
""",
    "narrow copies": """\
gemm            C[m, n] = A[k, m] * B[k, n]
tile            m=32 n=32 k=8
cache_shared    A B
register_block  m=4 n=4
vectorize       B.global width=2
double_buffer   A B stages=3
async_copy      A B via=cp_async
""",
    "split_k": """\
tile            m=16 n=32 k=8
cache_shared    A[k, m] B
register_block  m=2 n=4
vectorize       C width=4
split_k         parts=4
""",
    "atomic": """\
tile            m=16 n=16 k=8
cache_shared    A[k, m] B
split_k         parts=3 reduce=atomic
""",
    "lanes": """\
gemm            y[m, n] = A[m, k] * x[n, k]
tile            m=4 n=2 k=64
register_block  m=2 n=1
vectorize       A.global x.global width=2
split_k         within=warp
""",
    "lanes f64": """\
gemm            y[m, n] = A[m, k] * x[n, k]
dtype           A=f64 x=f64 y=f64 acc=f64
tile            m=4 n=2 k=64
register_block  m=2 n=1
split_k         within=warp
""",
    "tensor_core": """\
dtype           A=f16 B=f16 C=f16
tile            m=32 n=64 k=32
cache_shared    A B
warp_tile       m=16 n=32
tensor_core     via=wmma
vectorize       A.global B.global width=8
double_buffer   A B
async_copy      A B via=cp_async
""",
    "tensor_core bf16": """\
gemm            C[n, m] = A[k, m] * B[n, k]
dtype           A=bf16 B=bf16
tile            m=32 n=32 k=16
cache_shared    A B
tensor_core     via=wmma
""",
    "bf16": """\
dtype           A=bf16 B=bf16 C=bf16
tile            m=16 n=16 k=8
cache_shared    A[k, m] B
""",
    "batched": """\
gemm            C[b, m, n] = A[b, m, k] * B[b, k, n]
tile            m=16 n=16 k=8
cache_shared    A[k, m] B
register_block  m=2 n=4
vectorize       C width=4
""",
    "assumed": """\
assume          lda == K
assume          N % 4 == 0
tile            m=16 n=32 k=8
cache_shared    A B
register_block  m=1 n=4
vectorize       B.global C width=4
""",
}


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name], name))
