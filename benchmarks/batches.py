"""Batched products of attention without a schedule, against ``torch.bmm`` and ``torch.baddbmm``.

    python benchmarks/batches.py [--dtype bf16] [--json FILE]

Each of ``CASES`` is one launch of ``gemmgen.torch.op``: plain, with a factor, and with a factor and
a bias, which ``torch.baddbmm`` adds.  Replayed from CUDA graphs as ``default_path.py`` does.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from default_path import ROUNDS, about, graph, microseconds
from vendors import drawn, most_error, stated

CASES = (
    (48, 512, 512, 64, "A[b, m, k] * B[b, n, k]"),
    (48, 512, 64, 512, "A[b, m, k] * B[b, k, n]"),
    (96, 1024, 1024, 64, "A[b, m, k] * B[b, n, k]"),
    (96, 1024, 64, 1024, "A[b, m, k] * B[b, k, n]"),
)
"""Batches, M, N, K, and the storage order: Q K^T and P V."""
SCALE = 0.125
EPILOGUES = {"plain": "", "scale": f"acc * {SCALE}", "bias": f"acc * {SCALE} + bias[n]"}


@dataclass(frozen=True)
class Row:
    shape: tuple[int, ...]
    order: str
    epilogue: str
    torch_us: float
    ours_us: float
    share: float
    error: float


def measured(case: tuple[int, int, int, int, str], name: str, dtype: str, draw: Any) -> Row:
    import torch

    import gemmgen.torch

    batches, m, n, k, order = case
    a = drawn((batches, m, k), dtype)
    b = drawn((batches, n, k) if "n, k]" in order else (batches, k, n), dtype)
    right = b.mT if "n, k]" in order else b
    bias = drawn((n,), dtype)
    fused = f"fuse_epilogue {EPILOGUES[name]}\n" if EPILOGUES[name] else ""
    text = f"gemm C[b, m, n] = {order}\ndtype {stated(dtype)}\n{fused}"
    op = gemmgen.torch.op(text, name=f"bench::batches_{name}_{m}_{n}_{k}")
    own = {"bias": bias} if name == "bias" else {}
    added, beta = bias.expand(batches, m, n), 1 if name == "bias" else 0
    calls = {
        "torch": lambda: torch.baddbmm(added, a, right, beta=beta, alpha=SCALE),
        "ours": lambda: op(a, b, **own),
    }
    if name == "plain":
        calls["torch"] = lambda: torch.bmm(a, right)
    guess = 2 * batches * m * n * k / 6e8 + 2
    sides = {side: graph(call, guess) for side, call in calls.items()}
    ratios, times = list[float](), {side: list[float]() for side in sides}
    for _ in range(ROUNDS):
        us = {side: microseconds(*sides[side]) for side in draw.sample(list(sides), 2)}
        ratios.append(us["torch"] / us["ours"])
        for side, took in us.items():
            times[side].append(took)
    wanted = torch.bmm(a.float(), right.float())
    if name != "plain":
        wanted = wanted * SCALE + (bias.float() if name == "bias" else 0)
    error = float((op(a, b, **own).float() - wanted).norm() / wanted.norm())
    return Row(case[:4], order, name, *(median(times[x]) for x in calls), median(ratios), error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    draw, rows = random.Random(asked.seed), list[Row]()
    for case in CASES:
        for name in EPILOGUES:
            row = measured(case, name, asked.dtype, draw)
            rows.append(row)
            wrong = "" if row.error < most_error(asked.dtype) else f"  WRONG: {row.error:.1e}"
            extents = " x ".join(map(str, row.shape))
            us = f"torch {row.torch_us:8.2f} us, ours {row.ours_us:8.2f} us"
            print(f"{extents:>22} {row.order} {name:>5} {us} {row.share:.3f}{wrong}", flush=True)
    mean = math.exp(fmean(math.log(row.share) for row in rows))
    print(f"{len(rows)} products: {mean:.3f} of torch (least {min(x.share for x in rows):.3f})")
    if asked.json:
        found = {**about(asked), "rows": [asdict(row) for row in rows]}
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.error < most_error(asked.dtype) for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
