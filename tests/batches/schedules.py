"""Schedules with batch letters: in both inputs, in one, several, in any position."""

from __future__ import annotations

BLOCKED = "tile {m}=32 {n}=32 k=8\ncache_shared A[k, {m}] B[k, {n}]\nregister_block {m}=4 {n}=4\n"
MN = BLOCKED.format(m="m", n="n")

GOLDEN = {
    "batched": """\
gemm            C[b, m, n] = A[b, m, k] * B[b, k, n]
tile            m=64 n=64 k=8
cache_shared    A[k, m] B[k, n]
register_block  m=8 n=8
vectorize       A B C width=4
pad             A by=4
double_buffer   A B
raster          group=4
""",
    "attention_scores": """\
gemm            S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]
tile            i=32 j=64 d=8
cache_shared    Q[d, i] K[d, j]
register_block  i=4 j=8
vectorize       Q.shared K.shared S width=4
fuse_epilogue   where(j > i, -1e+30, acc * scale + mask[b, j] - slope[h] * (i - j))
""",
}
"""Those whose texts are kept."""

SCHEDULES = GOLDEN | {
    "naive": "gemm C[b, m, n] = A[b, m, k] * B[b, k, n]\n",
    "naive, B shared": "gemm C[b, m, n] = A[b, m, k] * B[k, n]\n",
    "A shared": "gemm C[b, m, n] = A[m, k] * B[b, k, n]\nbind x=m\ntile m=32 n=8\n",
    "heads times values": "gemm O[b, h, i, d] = P[b, h, i, j] * V[b, h, j, d]\n"
    "tile i=32 d=32 j=8\ncache_shared P[j, i] V\nregister_block i=4 d=4\nvectorize V O width=4\n"
    "double_buffer P V stages=3\nasync_copy P V via=cp_async\n",
    "between rows and columns": "gemm C[m, b, n] = A[k, b, m] * B[b, n, k]\n" + MN,
    "a column and a row": f"gemm C[p, q, m, n] = A[p, m, k] * B[k, q, n]\n{MN}pad A by=1\n",
    "four in every order": "gemm C[x, y, z, w, m, n] = A[y, m, w, k] * B[z, x, w, k, n]\n"
    "tile m=16 n=16\nregister_block m=2 n=4\n",
    "rows that are known": "gemm C[m, b, n] = A[b, m, k] * B[b, k, n]\nassume ldc == N\n"
    f"assume lda == K\nassume N % 4 == 0\n{MN}vectorize B C width=4\n",
    "an epilogue of all": f"gemm C[b, h, m, n] = A[b, m, k] * B[h, k, n]\n{MN}fuse_epilogue "
    "acc * s[b, h] + t[h] + u[n, h, m] - v[b, m] + w[m, n] + beta * C[b, h, m, n] + b\n",
    "a split sum": f"gemm C[b, h, m, n] = A[b, h, m, k] * B[h, k, n]\n{MN}raster group=2\n"
    "split_k parts=3\nfuse_epilogue relu(acc + bias[h, n])\n",
    "lanes share sums": "gemm y[b, h, m, n] = A[b, m, k] * x[h, n, k]\ntile m=8 n=2 k=64\n"
    "register_block m=2 n=2\nsplit_k within=warp\nfuse_epilogue acc + u[h, m] * b\n",
    "tensor cores": "gemm C[b, m, n] = A[b, m, k] * B[k, n]\ndtype A=f16 B=f16\n"
    "tile m=64 n=64 k=32\ncache_shared A B\nwarp_tile m=32 n=32\ntensor_core via=wmma\n"
    "vectorize A.global B.global C width=4\n",
    "f64": f"gemm C[b, m, n] = A[b, m, k] * B[b, k, n]\ndtype A=f64 B=f64 C=f64 acc=f64\n{MN}",
}
