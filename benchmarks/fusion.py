"""The fused rung of the ladder against what it replaces, in one run, every result checked.

    python benchmarks/fusion.py                 # a table
    python benchmarks/fusion.py --json FILE     # and its rows as JSON

``relu(A @ B + bias)`` by ``fused``; by ``register_blocked``, the rung before, and one or two
elementwise kernels; by cuBLAS and the same.  Needs a GPU, CuPy and cuBLAS.  Exit code 1 if a result
was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from passes import expected, followed, within

from gemmgen.gpu import cublas, device
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.timing import time_interleaved
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

SHAPES = tuple((size, k) for size in (1024, 2048, 4096, 8192) for k in (256, size))
"""M = N, and K."""
FUSED = "fused"
BEFORE = "register_blocked"


@dataclass(frozen=True)
class Line:
    """Milliseconds of one way to compute the layer at M = N = ``size``; ``share`` is the time of
    this way over that of the fused kernel."""

    way: str
    passes: int
    size: int
    k: int
    ms: float
    share: float
    checked: bool
    gpu: str


def kernel_of(name: str) -> Kernel:
    """An example, compiled for this GPU."""
    return Kernel.of(compile_source(read_source(str(examples.path_of(name)))))


def measured() -> Iterator[Line]:
    """All ways at each of ``SHAPES``, interleaved."""
    cp: Any = device.cupy()
    fused, before = kernel_of(FUSED), kernel_of(BEFORE)
    for size, k in SHAPES:
        rng = cp.random.default_rng(1)
        a, b = (rng.standard_normal(shape, dtype=cp.float32) for shape in ((size, k), (k, size)))
        bias = rng.standard_normal(size, dtype=cp.float32)
        outputs: dict[tuple[str, int], Any] = {}
        runs: dict[str, Callable[[], None]] = {}

        def output(way: str, passes: int, shape: int = size, kept: Any = outputs) -> Any:
            return kept.setdefault((way, passes), cp.full((shape, shape), cp.nan, cp.float32))

        runs[f"{FUSED} 0"] = fused.prepare(A=a, B=b, C=output(FUSED, 0), bias=bias)
        for passes in (1, 2):
            c = output(BEFORE, passes)
            product = before.prepare(A=a, B=b, C=c, alpha=1.0, beta=0.0)
            runs[f"{BEFORE} {passes}"] = followed(product, c, bias, passes)
            c = output("cuBLAS", passes)
            product = cublas.gemm(cublas.matrix(a), cublas.matrix(b), cublas.matrix(c))
            runs[f"cuBLAS {passes}"] = followed(product, c, bias, passes)
        timings = time_interleaved(runs)
        exact, bound = expected(a, b, bias)
        gpu = device.name(cp.cuda.runtime.getDevice())
        base = timings[f"{FUSED} 0"].median
        for (way, passes), c in outputs.items():
            ms = timings[f"{way} {passes}"].median
            yield Line(way, passes, size, k, ms, ms / base, within(c, exact, bound), gpu)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    arguments = parser.parse_args()
    lines: list[Line] = []
    for line in measured():
        kernels = f" and {line.passes} elementwise" if line.passes else ""
        checked = "" if line.checked else "  WRONG"
        print(
            f"{line.size:6d}  {line.way + kernels:36s} {line.ms:9.4f} ms  {line.share:.3f}{checked}"
        )
        lines.append(line)
    if arguments.json:
        rows = json.dumps([asdict(line) for line in lines], indent=1)
        Path(arguments.json).write_text(rows + "\n", encoding="utf-8")
    return 0 if all(line.checked for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
