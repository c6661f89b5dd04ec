"""Host time of a call: that of Python and the driver for one launch of a small kernel.

    python benchmarks/host_time.py [--json FILE]

Calls of a kernel on CuPy arrays and on PyTorch tensors, compared with torch.mm, cupy.matmul and an
empty Triton kernel.  The queue of the GPU is drained between batches of calls, and the kernels are
so small that it never fills, so that only host time counts.  Medians over batches, in us a call.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import cupy as cp

import gemmgen

SCHEDULE = "gemm C[m, n] = A[m, k] * B[k, n]\ntile m=16 n=16 k=8\ncache_shared A B\n"
SPLIT = SCHEDULE + "split_k parts=2\n"
BATCH, BATCHES = 200, 60
M, N, K = 16, 16, 8
SHAPES = 300

Rows = dict[str, Callable[[], object]]


def time_rows(rows: Rows) -> dict[str, float]:
    """Medians of the host time of one call of each, with interleaved batches."""
    for call in rows.values():
        for _ in range(50):
            call()
    found: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(BATCHES):
        for name, call in rows.items():
            cp.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            for _ in range(BATCH):
                call()
            found[name].append((time.perf_counter() - start) / BATCH * 1e6)
    return {name: statistics.median(times) for name, times in found.items()}


def ours(kernel: Callable[..., object], a: object, b: object, c: object, of: str) -> Rows:
    launch = kernel.prepare(a, b, c)  # type: ignore[attr-defined]
    return {
        f"{of}: kernel(A, B, C)": lambda: kernel(a, b, c),
        f"{of}: kernel(A=A, B=B, C=C)": lambda: kernel(A=a, B=b, C=c),
        f"{of}: kernel(A, B, C, alpha, beta)": lambda: kernel(a, b, c, alpha=2.0, beta=0.5),
        f"{of}: kernel(A, B)": lambda: kernel(a, b),
        f"{of}: prepared": launch,
    }


def of_cupy(kernel: Callable[..., object]) -> Rows:
    a, b, c = (cp.ones(shape, "float32") for shape in ((M, K), (K, N), (M, N)))
    rows = ours(kernel, a, b, c, "CuPy")
    rows["CuPy: gemmgen.matmul(A, B)"] = lambda: gemmgen.matmul(a, b)
    rows["CuPy: gemmgen.matmul(A, B, out=C)"] = lambda: gemmgen.matmul(a, b, out=c)
    rows["CuPy: cupy.matmul(A, B, out=C)"] = lambda: cp.matmul(a, b, out=c)
    return rows


def of_torch(kernel: Callable[..., object]) -> Rows:
    import torch

    a, b, c = (torch.ones(s, device="cuda") for s in ((M, K), (K, N), (M, N)))
    rows = ours(kernel, a, b, c, "PyTorch")
    rows["PyTorch: torch.mm(A, B, out=C)"] = lambda: torch.mm(a, b, out=c)
    rows["PyTorch: torch.mm(A, B)"] = lambda: torch.mm(a, b)
    weight, bias = torch.ones((N, K), device="cuda"), torch.ones(N, device="cuda")
    linear = torch.nn.functional.linear
    rows["PyTorch: linear(A, W, bias)"] = lambda: linear(a, weight, bias)
    rows["PyTorch: gemmgen.matmul(A, B)"] = lambda: gemmgen.matmul(a, b)
    rows["PyTorch: gemmgen.matmul(A, B, out=C)"] = lambda: gemmgen.matmul(a, b, out=c)
    rows["PyTorch: gemmgen.linear(A, W, bias)"] = lambda: gemmgen.linear(a, weight, bias)
    split = gemmgen.compile(SPLIT)
    rows["PyTorch: split_k kernel(A, B, C)"] = lambda: split(a, b, c)
    rows.update(_triton(a, b, c))
    return rows


def _triton(a: object, b: object, c: object) -> Rows:
    try:
        import triton  # noqa: F401
    except ImportError:
        return {}
    import importlib.util
    import pathlib
    import tempfile

    text = "import triton\n\n@triton.jit\ndef nothing(a, b, c, m, n, k):\n    pass\n"
    path = pathlib.Path(tempfile.mkdtemp()) / "nothing.py"
    path.write_text(text)  # Triton reads its source from a file
    spec = importlib.util.spec_from_file_location("nothing", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = module.nothing[(1,)]
    return {"PyTorch: empty Triton kernel": lambda: run(a, b, c, M, N, K)}


def of_many_shapes(
    kernel: Callable[..., object], ones: Callable[[tuple[int, int]], object], of: str
) -> dict[str, float]:
    """One shape repeatedly, and 300 shapes, one after another."""
    calls: list[tuple[object, ...]] = []
    for m in range(16, 16 + SHAPES):
        calls.append(tuple(ones(shape) for shape in ((m, K), (K, N), (m, N))))

    def around(several: list[tuple[object, ...]]) -> float:
        for a, b, c in several:
            kernel(a, b, c)
        times = []
        for _ in range(20):
            cp.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            for a, b, c in several:
                kernel(a, b, c)
            times.append((time.perf_counter() - start) / len(several) * 1e6)
        return statistics.median(times)

    one, all_of_them = around(calls[:1] * SHAPES), around(calls)
    return {f"{of}: one shape": one, f"{of}: {SHAPES} shapes": all_of_them}


def of_compile() -> dict[str, float]:
    gemmgen.compile(SCHEDULE)
    start = time.perf_counter()
    for _ in range(1000):
        gemmgen.compile(SCHEDULE)
    return {"compile of the same text again": (time.perf_counter() - start) * 1e3}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    kernel = gemmgen.compile(SCHEDULE)
    found = time_rows(of_cupy(kernel))
    found |= of_many_shapes(kernel, lambda shape: cp.ones(shape, "float32"), "CuPy")
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: its rows are left out", file=sys.stderr)
    else:
        found |= time_rows(of_torch(kernel))
        found |= of_many_shapes(kernel, lambda shape: torch.ones(shape, device="cuda"), "PyTorch")
    found |= of_compile()
    for name, us in found.items():
        print(f"{name:38} {us:6.2f} us")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
