"""What batch invariance costs: ``require same_bits over m`` against the unconstrained choice.

    python benchmarks/same_bits.py [--dtype bf16] [--json FILE]

Each layer of ``LAYERS`` multiplies ``ROWS`` rows by both operators of ``gemmgen.torch``, replayed
from CUDA graphs as ``default_path.py`` does; the share is the unconstrained time over the
invariant one.  The rows of each invariant result must have the bits of those of the longest.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from default_path import ROUNDS, about, graph, microseconds

LAYERS = ((2304, 768), (1024, 4096), (7168, 2048), (4096, 4096), (8192, 8192))
"""N and K."""
ROWS = (1, 2, 3, 8, 16, 33, 64, 128, 200, 256, 512, 1000, 2048, 4096, 8192)


@dataclass(frozen=True)
class Row:
    shape: tuple[int, int, int]
    free_us: float
    same_us: float
    share: float
    equal: bool


def measured(n: int, k: int, dtype: str, draw: random.Random) -> list[Row]:
    """A layer, for each number of rows."""
    import torch

    import gemmgen.torch

    kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
    a, b = (torch.randn(size, device="cuda").to(kind) for size in ((max(ROWS), k), (n, k)))
    text = f"gemm C[m, n] = A[m, k] * B[n, k]\ndtype A={dtype} B={dtype} C={dtype}\n"
    free = gemmgen.torch.op(text, name="bench::free")
    same = gemmgen.torch.op(f"{text}require same_bits over m\n", name="bench::same")
    whole: Any = same(a, b)
    found: list[Row] = []
    for rows in ROWS:
        x = a[:rows]
        guess = 2 * rows * n * k / 6e8 + 2
        sides = {
            "free": graph(lambda x=x: free(x, b), guess),
            "same": graph(lambda x=x: same(x, b), guess),
        }
        times = {name: list[float]() for name in sides}
        for _ in range(ROUNDS):
            for side in draw.sample(list(sides), 2):
                times[side].append(microseconds(*sides[side]))
        share = median(f / s for f, s in zip(times["free"], times["same"], strict=True))
        equal = bool(torch.equal(same(x, b), whole[:rows]))
        us = (median(times[name]) for name in sides)
        found.append(Row((rows, n, k), *us, share, equal))
    return found


def summary(rows: Sequence[Row]) -> str:
    mean = math.exp(fmean(math.log(row.share) for row in rows))
    least = min(row.share for row in rows)
    return f"{len(rows)} products: {mean:.3f} of the unconstrained choice (least {least:.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("bf16", "f16", "f32"), default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    draw, rows = random.Random(asked.seed), list[Row]()
    for n, k in LAYERS:
        own = measured(n, k, asked.dtype, draw)
        for row in own:
            extents = " x ".join(map(str, row.shape))
            bits = "equal" if row.equal else "OTHER BITS"
            us = f"{row.same_us:9.2f} us, unconstrained {row.free_us:9.2f}"
            print(f"{extents:>20} {us} {row.share:6.3f} {bits}", flush=True)
        print(f"N = {n}, K = {k}: {summary(own)}", flush=True)
        rows += own
        if asked.json:
            known = {**about(asked), "rows": [asdict(row) for row in rows]}
            asked.json.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(summary(rows))
    return 0 if all(row.equal for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
