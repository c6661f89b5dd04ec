"""A layer without fusion: a product, then bias and relu as elementwise kernels.

These read and write 16 bytes a thread, so that fusion is compared with good elementwise kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemmgen.gpu import cublas, device
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.floor import lower_bound
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.setup import setup
from gemmgen.gpu.timing import compare, time_interleaved

THREADS = 256
SOURCE = """
extern "C" __global__ void bias_relu(float4 *C, const float4 *bias, int quads, int N) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 b = bias[i % (N / 4)];
    float4 c = C[i];
    c.x = fmaxf(c.x + b.x, 0.0f); c.y = fmaxf(c.y + b.y, 0.0f);
    c.z = fmaxf(c.z + b.z, 0.0f); c.w = fmaxf(c.w + b.w, 0.0f);
    C[i] = c;
}
extern "C" __global__ void add_bias(float4 *C, const float4 *bias, int quads, int N) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 b = bias[i % (N / 4)];
    float4 c = C[i];
    c.x += b.x; c.y += b.y; c.z += b.z; c.w += b.w;
    C[i] = c;
}
extern "C" __global__ void relu(float4 *C, int quads) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 c = C[i];
    c.x = fmaxf(c.x, 0.0f); c.y = fmaxf(c.y, 0.0f); c.z = fmaxf(c.z, 0.0f); c.w = fmaxf(c.w, 0.0f);
    C[i] = c;
}
"""


def fused_row(name: str, kernel: Kernel, shape: Mapping[str, int], passes: int) -> BenchRow:
    """``relu(A @ B + bias)`` at ``shape`` (M, N, K): the fused kernel against cuBLAS and ``passes``
    elementwise kernels (1 or 2), interleaved; both results are checked afterwards."""
    cp: Any = device.cupy()
    rng = cp.random.default_rng(1)
    m, n, k = (shape[letter] for letter in "MNK")
    a, b = (rng.standard_normal(size, dtype=cp.float32) for size in ((m, k), (k, n)))
    bias = rng.standard_normal(n, dtype=cp.float32)
    mine, theirs = cp.full((m, n), cp.nan, cp.float32), cp.full((m, n), cp.nan, cp.float32)
    fused = kernel.prepare(A=a, B=b, C=mine, bias=bias)
    product = cublas.gemm(cublas.matrix(a), cublas.matrix(b), cublas.matrix(theirs))
    timings = time_interleaved({name: fused, "rival": followed(product, theirs, bias, passes)})
    about = setup(cp.cuda.runtime.getDevice())
    exact, bound = expected(a, b, bias)
    checked = all(within(c, exact, bound) for c in (mine, theirs))
    here, rival = timings[name], timings["rival"]
    return BenchRow(
        name=name,
        shape=tuple(shape.items()),
        ms=here.median,
        lower=here.lower,
        upper=here.upper,
        tflops=2 * m * n * k / here.median / 1e9,
        share=rival.median / here.median,
        verdict=compare(here, rival),
        floor=lower_bound(kernel.interface, shape, device.figures(cp.cuda.runtime.getDevice())),
        checked=checked,
        gpu=device.name(cp.cuda.runtime.getDevice()),
        setup=about,
    )


def expected(a: Any, b: Any, bias: Any) -> tuple[Any, Any]:
    """``relu(a @ b + bias)`` in float64, and the bound of each element's error in float32."""
    cp: Any = device.cupy()
    exact = cp.maximum(a.astype(cp.float64) @ b.astype(cp.float64) + bias, 0)
    terms = abs(a).astype(cp.float64) @ abs(b).astype(cp.float64) + abs(bias)
    return exact, 16 * 2.0**-24 * terms


def within(found: Any, exact: Any, bound: Any) -> bool:
    """Whether no element differs from ``exact`` by more than its ``bound``."""
    return bool((abs(found - exact) <= bound).all())


def followed(product: Callable[[], None], c: Any, bias: Any, passes: int) -> Callable[[], None]:
    """``product``, which writes ``c``, then bias and relu on ``c`` by ``passes`` kernels (1, 2)."""
    cp: Any = device.cupy()
    module = cp.RawModule(code=SOURCE)
    quads, columns = cp.int32(c.size // 4), cp.int32(c.shape[1])
    grid, block = (-(-c.size // 4 // THREADS),), (THREADS,)
    one = module.get_function("bias_relu")
    first, second = module.get_function("add_bias"), module.get_function("relu")

    def run() -> None:
        product()
        if passes == 1:
            one(grid, block, (c, bias, quads, columns))
        else:
            first(grid, block, (c, bias, quads, columns))
            second(grid, block, (c, quads))

    return run
