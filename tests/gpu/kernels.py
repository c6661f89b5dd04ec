"""The handwritten kernels of the ladder, with the interfaces that the compiler would give them."""

from __future__ import annotations

from pathlib import Path

from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import Aligned, AtLeast, MultipleOf, Requirement

FOLDER = Path(__file__).parents[1] / "handwritten"

PLAIN = {  # name: (threads, tile of m, tile of n)
    "naive": ((32, 8), 8, 32),
    "tiled": ((32, 32), 32, 32),
}


def text(name: str) -> str:
    return (FOLDER / f"{name}.cu").read_text()


def interface(
    threads: tuple[int, int],
    tile_m: int,
    tile_n: int,
    *,
    orders: tuple[str, str, str] = ("mk", "kn", "mn"),
    width: int = 1,
) -> Interface:
    """alpha A B + beta C, tensors stored as ``orders`` say, accesses ``width`` elements wide."""
    a, b, c = (tuple(order) for order in orders)
    pitches = (("A", "lda", a), ("B", "ldb", b), ("C", "ldc", c))
    requirements: list[Requirement] = [AtLeast(ld, i[-1].upper()) for _, ld, i in pitches]
    if width > 1:
        requirements += [Aligned(name, 4 * width) for name, _, _ in pitches]
        requirements += [MultipleOf(ld, width) for _, ld, _ in pitches]
    return Interface(
        name="gemm",
        params=(
            *(Param(name, "extent") for name in "MNK"),
            Param("alpha", "scalar"),
            Param("A", "tensor", a),
            Param("lda", "ld"),
            Param("B", "tensor", b),
            Param("ldb", "ld"),
            Param("beta", "scalar"),
            Param("C", "tensor", c, written=True),
            Param("ldc", "ld"),
        ),
        block=threads,
        tiles=(("M", tile_m), ("N", tile_n)),
        requirements=tuple(requirements),
        dynamic_shared=0,
        static_shared=0,
        pitch=tuple((name, ld) for name, ld, _ in pitches),
    )


def relu_bias() -> Interface:
    """The handwritten ``vectorized``: relu(acc + bias[n]), 16-byte accesses."""
    base = interface((16, 16), 128, 128, width=4)
    params = [p for p in base.params if p.kind != "scalar"]
    params.insert(7, Param("bias", "tensor", ("n",)))
    output = Param("C", "tensor", ("m", "n"), written=True, read=False)
    return Interface(
        name="gemm",
        params=tuple(output if p.name == "C" else p for p in params),
        block=base.block,
        tiles=base.tiles,
        requirements=base.requirements,
        dynamic_shared=0,
        static_shared=0,
        pitch=base.pitch,
    )


BATCHED = """
extern "C" __global__ void __launch_bounds__(256)
    gemm(int M, int N, int K, int size_b, float alpha, const float *__restrict__ X, int ldx,
         long long stride_X_b, const float *__restrict__ Y, int ldy, float beta,
         float *__restrict__ Z, int ldz, long long stride_Z_b) {
  const int blocks_m = (M + 7) / 8, blocks_n = (N + 31) / 32;
  const int b = blockIdx.x / (blocks_m * blocks_n), block = blockIdx.x % (blocks_m * blocks_n);
  const int m = block / blocks_n * 8 + threadIdx.y, n = block % blocks_n * 32 + threadIdx.x;
  if (m >= M || n >= N) return;
  const float *x = X + b * stride_X_b;
  float *z = Z + b * stride_Z_b;
  float acc = 0.0f;
  for (int k = 0; k < K; ++k) acc = fmaf(x[m * ldx + k], Y[k * ldy + n], acc);
  z[m * ldz + n] = beta == 0.0f ? alpha * acc : fmaf(beta, z[m * ldz + n], alpha * acc);
}
"""


def batched() -> Interface:
    """Z[b, m, n] = X[b, m, k] * Y[k, n], the kernel ``BATCHED``."""
    tensors = (("X", "ldx", "bmk"), ("Y", "ldy", "kn"), ("Z", "ldz", "bmn"))
    x, y, z = (
        (Param(name, "tensor", tuple(letters), written=name == "Z"), Param(ld, "ld"))
        for name, ld, letters in tensors
    )
    extents = tuple(Param(name, "extent") for name in ("M", "N", "K", "size_b"))
    alpha, beta = Param("alpha", "scalar"), Param("beta", "scalar")
    of_x, of_z = Param("stride_X_b", "stride"), Param("stride_Z_b", "stride")
    return Interface(
        name="gemm",
        params=(*extents, alpha, *x, of_x, *y, beta, *z, of_z),
        block=(32, 8),
        tiles=(("M", 8), ("N", 32)),
        requirements=(),
        dynamic_shared=0,
        static_shared=0,
        pitch=tuple((name, ld) for name, ld, _ in tensors),
        batches=(("b", "size_b"),),
        strides=(("X", "b", "stride_X_b"), ("Z", "b", "stride_Z_b")),
    )


def any_order(orders: tuple[str, str, str]) -> str:
    """A naive kernel for tensors stored as ``orders`` say."""
    at = [
        f"static_cast<long long>({o[0]}) * ld{x} + {o[1]}"
        for x, o in zip("abc", orders, strict=True)
    ]
    return f"""
extern "C" __global__ void __launch_bounds__(256)
    gemm(int M, int N, int K, float alpha, const float *__restrict__ A, int lda,
         const float *__restrict__ B, int ldb, float beta, float *__restrict__ C, int ldc) {{
  const int blocks_n = (N + 31) / 32;
  const int m = blockIdx.x / blocks_n * 8 + threadIdx.y;
  const int n = blockIdx.x % blocks_n * 32 + threadIdx.x;
  if (m >= M || n >= N) return;
  float acc = 0.0f;
  for (int k = 0; k < K; ++k) acc = fmaf(A[{at[0]}], B[{at[1]}], acc);
  float &c = C[{at[2]}];
  c = beta == 0.0f ? alpha * acc : fmaf(beta, c, alpha * acc);
}}
"""
