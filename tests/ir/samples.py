"""Programs and lowered kernels that the tests of the IR start from."""

from __future__ import annotations

NAIVE = """\
program sm_80
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=8, n=32]
    tensor A[m, k] f32
    tensor B[k, n] f32
    tensor C[m, n] f32
    accumulator acc[m=8, n=32] f32 spread [m=1x1x8x1, n=1x1x32x1] x=n
    init acc
    loop k
      contract acc += A * B
    map C = alpha * acc + beta * C[m, n]
"""

UNFUSED = """\
program sm_80
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=relu(acc + bias[n])
  kernel gemm
    work [m=8, n=32]
    tensor A[m, k] f32
    tensor B[k, n] f32
    temporary unfused[m, n] f32
    accumulator acc[m=8, n=32] f32 spread [m=1x1x8x1, n=1x1x32x1] x=n
    init acc
    loop k
      contract acc += A * B
    map unfused = acc
  kernel gemm_epilogue
    work [m=8, n=32]
    temporary unfused[m, n] f32
    tensor C[m, n] f32
    accumulator acc[m=8, n=32] f32 spread [m=1x1x8x1, n=1x1x32x1] x=n
    copy acc = unfused
    map C = relu(acc + bias[n])
"""

FAST = """\
program sm_90a
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=relu(acc + bias[n])
  kernel fast
    work [m=128, n=128] raster=8   # tile m=128 n=128 k=8; raster group=8
    tensor A[m, k] f32
    tensor B[k, n] f32
    tensor C[m, n] f32
    tile A_shared[k=8, m=128] f32 of=A pad=4 stages=2   # cache_shared A[k, m] B; pad A by=4
    tile B_shared[k=8, n=128] f32 of=B stages=3   # cache_shared A[k, m] B
    fragment A_frag[m=128] f32 of=A stages=2 spread [m=1x2x16x4] x=n   # register_block m=8 n=8
    fragment B_frag[n=128] f32 of=B spread [n=1x2x16x4] x=n   # register_block m=8 n=8
    accumulator acc[m=128, n=128] f32 spread [m=1x2x16x4, n=1x2x16x4] x=n   # register_block m=8 n=8
    init acc
    pipeline k by 8   # tile m=128 n=128 k=8
      copy A_shared = A width=4   # cache_shared A[k, m] B; vectorize A B C width=4
      copy B_shared = B width=4   # cache_shared A[k, m] B
      loop k
        copy A_frag = A_shared width=4   # register_block m=8 n=8
        copy B_frag = B_shared width=2
        contract acc += A_frag * B_frag order=serpentine   # register_block m=8 n=8
    map C = relu(acc + bias[n]) width=4   # fuse_epilogue relu(acc + bias[n])
  fact N divisor=4
  fact lda equals=K
"""

TRANSPOSED = """\
program sm_80
  problem out[col, row] = x[step, row] * weight[col, step] over row, col, step epilogue=(alpha * acc + beta * out[col, row])
  kernel gemm
    work [row=16, col=16]
    tensor x[step, row] f32
    tensor weight[col, step] f32
    tensor out[col, row] f32
    tile x_shared[row=16, step=4] f32 of=x pad=1
    accumulator acc[col=16, row=16] f32 spread [row=1x1x16x1, col=1x1x16x1] x=row
    init acc
    pipeline step by 4
      copy x_shared = x
      loop step
        contract acc += x_shared * weight
    map out = alpha * acc + beta * out[col, row]
"""  # noqa: E501

HALVES = """\
program sm_90
  problem C[m, n] dtype=f16 = A[m, k] dtype=f16 * B[k, n] dtype=bf16 over m, n, k epilogue=(acc + bias[n]) others=[bias=f32]
  kernel gemm
    work [m=64, n=64]
    tensor A[m, k] f16
    tensor B[k, n] bf16
    tensor C[m, n] f16
    tile A_shared[m=64, k=8] f16 of=A   # cache_shared A[m, k]
    fragment A_frag[m=64] f32 of=A spread [m=1x1x8x8] x=n   # register_block m=8 n=8
    fragment B_frag[n=64] f32 of=B spread [n=1x1x8x8] x=n   # register_block m=8 n=8
    accumulator acc[m=64, n=64] f32 spread [m=1x1x8x8, n=1x1x8x8] x=n   # register_block m=8 n=8
    init acc
    pipeline k by 8   # tile m=64 n=64 k=8
      copy A_shared = A width=8   # cache_shared A[m, k]; vectorize A.global width=8
      loop k
        copy A_frag = A_shared
        copy B_frag = B
        contract acc += A_frag * B_frag
    map C = acc + bias[n] width=8   # fuse_epilogue acc + bias[n]; vectorize C width=8
"""  # noqa: E501

UNROLLED = """\
program sm_80
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=16, n=16]
    bounds blocks=2   # launch_bounds blocks=2
    tensor A[m, k] f32
    tensor B[k, n] f32
    tensor C[m, n] f32
    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n
    init acc
    pipeline k by 8 unroll=2   # unroll k=4 tile_k=2
      loop k unroll=4   # unroll k=4 tile_k=2
        contract acc += A * B
    map C = alpha * acc + beta * C[m, n]
"""

EARLY = """\
program sm_80
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=16, n=16]
    tensor A[m, k] f32
    tensor B[k, n] f32
    tensor C[m, n] f32
    tile A_shared[k=8, m=16] f32 of=A stages=2
    tile B_shared[k=8, n=16] f32 of=B stages=3
    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n
    init acc
    pipeline k by 8 residue=first   # residue k=first
      copy A_shared = A width=4
      copy B_shared = B
      loop k
        contract acc += A_shared * B_shared
    map C = alpha * acc + beta * C[m, n]
  fact K divisor=4
"""

TENSOR = """\
program sm_80
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=64, n=32]
    tensor A[m, k] f16
    tensor B[k, n] f16
    tensor C[m, n] f32
    tile A_shared[m=64, k=32] f16 of=A pad=8
    tile B_shared[k=32, n=32] f16 of=B pad=8
    fragment A_frag[m=64, k=16] f16 of=A spread [m=2x2x1x16, k=1x1x1x16] x=n atom=wmma
    fragment B_frag[n=32, k=16] f16 of=B spread [n=1x2x1x16, k=1x1x1x16] x=n atom=wmma
    staging acc_shared[m=32, n=32] f32 of=acc pad=8
    accumulator acc[m=64, n=32] f32 spread [m=2x2x1x16, n=1x2x1x16] x=n atom=wmma
    init acc
    pipeline k by 32
      copy A_shared = A
      copy B_shared = B
      loop k step=16
        copy A_frag = A_shared
        copy B_frag = B_shared
        contract acc += A_frag * B_frag atom=wmma
    map C = alpha * acc + beta * C[m, n] width=4 through=acc_shared
"""

MMA_BYTES = """\
program sm_80
  problem C[m, n] dtype=i32 = A[m, k] dtype=i8 * B[n, k] dtype=i8 over m, n, k epilogue=(alpha * acc + beta * C[m, n]) accumulate=i32
  kernel gemm
    work [m=32, n=32]
    tensor A[m, k] i8
    tensor B[n, k] i8
    tensor C[m, n] i32
    tile A_shared[m=32, k=32] i8 of=A
    tile B_shared[n=32, k=32] i8 of=B
    fragment A_frag[m=32, k=32] i8 of=A spread [m=2x2x8x1, k=1x2x4x4] x=n atom=m16n8k32 by_warp
    fragment B_frag[n=32, k=32] i8 of=B spread [n=1x4x8x1, k=1x2x4x4] x=n atom=m16n8k32 by_warp
    accumulator acc[m=32, n=32] i32 spread [m=2x2x8x1, n=1x4x4x2] x=n atom=m16n8k32 by_warp
    init acc
    pipeline k by 32
      copy A_shared = A
      copy B_shared = B
      loop k step=32
        copy A_frag = A_shared
        copy B_frag = B_shared
        contract acc += A_frag * B_frag atom=m16n8k32
    map C = alpha * acc + beta * C[m, n]
"""  # noqa: E501

FOLDED = """\
program sm_80
  problem C[m, n] = A[m, k] dtype=f16 * B[n, k] dtype=f16 over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=32, n=32]
    tensor A[m, k] f16
    tensor B[n, k] f16
    tensor C[m, n] f32
    tile A_shared[m=32, k=32] f16 of=A
    tile B_shared[n=32, k=32] f16 of=B
    fragment A_frag[m=32, k=16] f16 of=A spread [m=2x2x8x1, k=1x2x4x2] x=n atom=m16n8k16 by_warp
    fragment B_frag[n=32, k=16] f16 of=B spread [n=1x4x8x1, k=1x2x4x2] x=n atom=m16n8k16 by_warp
    accumulator acc[m=32, n=32] f32 spread [m=2x2x8x1, n=1x4x4x2] x=n atom=m16n8k16 by_warp
    partial part[m=32, n=32] f32 spread [m=2x2x8x1, n=1x4x4x2] x=n atom=m16n8k16 by_warp
    init acc
    pipeline k by 32
      copy A_shared = A
      copy B_shared = B
      loop k step=16
        copy A_frag = A_shared
        copy B_frag = B_shared
        contract part += A_frag * B_frag atom=m16n8k16
        promote acc += part every=64
    map C = alpha * acc + beta * C[m, n]
"""  # noqa: E501

STAGED = """\
program sm_80
  problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=32, n=64]
    tensor A[m, k] f32
    tensor B[k, n] f32
    tensor C[m, n] f32
    staging C_shared[m=8, n=64] f32 of=C
    fragment A_frag[m=32] f32 of=A spread [m=1x1x8x4] x=n
    fragment B_frag[n=64] f32 of=B spread [n=1x1x32x2] x=n
    accumulator acc[m=32, n=64] f32 spread [m=1x1x8x4, n=1x1x32x2] x=n
    init acc
    loop k
      copy A_frag = A
      copy B_frag = B
      contract acc += A_frag * B_frag
    map C_shared = alpha * acc + beta * C[m, n] width=2
    copy C = C_shared width=4
"""

MATRICES = """\
program sm_80
  problem C[b, h, m, n] = A[b, m, k] * B[h, k, n] over m, n, k epilogue=(acc + bias[h, n]) batch=[b, h]
  kernel gemm
    work [m=16, n=16] raster=2 batch=[b, h]   # tile m=16 n=16; raster group=2
    tensor A[m, k] f32
    tensor B[k, n] f32
    tensor C[m, n] f32
    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n   # tile m=16 n=16
    init acc
    loop k
      contract acc += A * B
    map C = acc + bias[h, n]   # fuse_epilogue acc + bias[h, n]
"""  # noqa: E501

BOXED = """\
program sm_90
  problem C[m, n] = A[m, k] * B[n, k] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  kernel gemm
    work [m=16, n=16]
    tensor A[m, k] f32
    tensor B[n, k] f32
    tensor C[m, n] f32
    tile A_shared[m=16, k=32] f32 of=A stages=2 swizzle by=8 every=1 chunk=4
    tile B_shared[n=16, k=32] f32 of=B stages=2 swizzle by=8 every=1 chunk=4
    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n
    init acc
    pipeline k by 32
      copy A_shared = A mode=tma
      copy B_shared = B mode=tma
      loop k
        contract acc += A_shared * B_shared
    map C = alpha * acc + beta * C[m, n]
"""

PLANES = """\
program sm_90a intent via=wgmma swizzled=[A, B] staged=[A, B] copied=[A=tma, B=tma]
  problem C[m, n] = A[m, k] * B[n, k] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
  split A_parts = A parts=3   # decompose into=bf16
  split B_parts = B parts=3   # decompose into=bf16
  kernel gemm
    work [m=64, n=64]   # tile m=64 n=64 k=32
    tensor A[m, k] f32
    planes A_parts[m, k] bf16 of=A parts=3   # decompose into=bf16
    tensor B[n, k] f32
    planes B_parts[n, k] bf16 of=B parts=3   # decompose into=bf16
    tensor C[m, n] f32
    tile A_shared[m=64, k=32] bf16 of=A stages=2 swizzle by=4 every=2 chunk=8 parts=3   # cache_shared A[m, k] B[n, k]; swizzle A B; double_buffer A B
    tile B_shared[n=64, k=32] bf16 of=B stages=2 swizzle by=4 every=2 chunk=8 parts=3   # cache_shared A[m, k] B[n, k]; swizzle A B; double_buffer A B
    partial part[m=64, n=64] f32 spread [m=4x2x8x1, n=1x8x4x2] x=n atom=m64nNk16_f32 by_warp   # tensor_core via=wgmma promote=64
    accumulator acc[m=64, n=64] f32 spread [m=4x2x8x1, n=1x8x4x2] x=n atom=m64nNk16_f32 by_warp   # tile m=64 n=64 k=32; tensor_core via=wgmma promote=64
    init acc
    pipeline k by 32   # tile m=64 n=64 k=32
      copy A_shared = A_parts mode=tma   # cache_shared A[m, k] B[n, k]; async_copy A B via=tma
      copy B_shared = B_parts mode=tma   # cache_shared A[m, k] B[n, k]; async_copy A B via=tma
      loop k step=16
        contract part += A_shared * B_shared atom=m64nNk16_f32 into=bf16 parts=3 products=6   # decompose into=bf16; tensor_core via=wgmma promote=64
        promote acc += part every=64   # tensor_core via=wgmma promote=64
    map C = alpha * acc + beta * C[m, n]
"""  # noqa: E501

PROGRAMS = {
    "naive": NAIVE,
    "unfused": UNFUSED,
    "fast": FAST,
    "transposed": TRANSPOSED,
    "halves": HALVES,
    "unrolled": UNROLLED,
    "early": EARLY,
    "tensor": TENSOR,
    "mma_bytes": MMA_BYTES,
    "promoted": FOLDED,
    "staged": STAGED,
    "matrices": MATRICES,
    "boxed": BOXED,
    "planes": PLANES,
}
