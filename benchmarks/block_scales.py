"""FP8 with scales of blocks of 128 against PyTorch (cuBLAS), and DeepGEMM if it is installed.

    python benchmarks/block_scales.py [--plans 1] [--count 0] [--seed 1] [--json FILE]

A has a scale for each 128 elements along k of a row, B one for each 128 x 128.  ``--plans``: how
many of the suggested schedules are timed, of which the first counts.  ``--count`` more shapes are
drawn.  All are replayed from CUDA graphs, each at least 20 ms after 15 ms of itself, in an order
drawn anew each round; the result is the median ratio of the rounds.  Outputs are compared with a
product in f32 after the timing.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from default_path import about, graph, microseconds

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_ranking import fastest

GEMM = "C[m, n] = (A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/128, k/128])"
DTYPE = "A=e4m3 B=e4m3 C=bf16"
BLOCK = 128
SHAPES = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    *((m, n, k) for m in (64, 128, 4096) for n, k in ((2112, 7168), (7168, 2048))),
    *((m, n, k) for m in (64, 128, 4096) for n, k in ((4096, 7168), (24576, 1536))),
    *((m, n, k) for m in (64, 128, 4096) for n, k in ((32768, 512), (7168, 16384))),
)
"""Two cubes, and the shapes of DeepGEMM's table: the layers of DeepSeek-V3 without groups."""
ROUNDS = 5
MOST_ERROR = 4e-3
SAID = ("tile", "tensor_core", "warp_specialize", "cluster", "split_k")


@dataclass
class Row:
    shape: tuple[int, int, int]
    us: dict[str, float]
    share: float
    """The vendor's time over that of the first schedule."""
    errors: dict[str, float]
    schedules: list[str]


def shapes(count: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """The named ones, and drawn ones in multiples of 16, of k in blocks."""
    yield from SHAPES
    draw = random.Random(seed)
    for _ in range(count):
        m, n = (int(2 ** draw.uniform(low, 13)) // 16 * 16 for low in (4, 7))
        yield m, n, int(2 ** draw.uniform(8, 13)) // BLOCK * BLOCK


def texts(shape: tuple[int, int, int], plans: int) -> list[str]:
    request = Request.of(GEMM, shape, dtype=DTYPE, epilogue="acc", gpu="H200")
    return [plan.text for plan in fastest(request, plans)]


def compiled(text: str) -> Any:
    """The kernel as users call it from Python; None for a schedule that the passes refuse."""
    import gemmgen
    from gemmgen.base.errors import ScheduleError

    try:
        return gemmgen.compile(text)
    except ScheduleError:
        return None


def rivals(a: Any, b: Any, sa: Any, sb: Any, c: Any) -> dict[str, Callable[[], Any]]:
    """What else multiplies these operands, by its name."""
    import torch

    of_a, of_b = sa.t(), sb.t()  # as PyTorch takes them, without a copy
    found: dict[str, Callable[[], Any]] = {
        "torch": lambda: torch._scaled_mm(
            a, b.t(), scale_a=of_a, scale_b=of_b, out_dtype=torch.bfloat16
        )
    }
    try:
        import deep_gemm

        given = deep_gemm.get_mn_major_tma_aligned_tensor(of_a.contiguous())
    except Exception as error:  # not installed, or for another PyTorch
        print(f"  DeepGEMM: {str(error).splitlines()[0][:100]}", flush=True)
        return found

    def deep() -> Any:
        deep_gemm.fp8_gemm_nt((a, given), (b, sb), c, disable_ue8m0_cast=True)
        return c

    return found | {"DeepGEMM": deep}


def measured(shape: tuple[int, int, int], kernels: list[Any], draw: random.Random) -> Row:
    import torch

    m, n, k = shape
    a, b = (torch.randn(x, k, device="cuda").to(torch.float8_e4m3fn) for x in (m, n))
    blocks, columns = -(-k // BLOCK), -(-n // BLOCK)
    pitch = -(-m // 4) * 4
    sa = torch.rand(blocks, pitch, device="cuda")[:, :m] + 0.5
    sa = torch.nn.functional.pad(sa, (0, pitch - m))[:, :m]
    sb = torch.rand(columns, blocks, device="cuda") + 0.5
    guess = 2 * m * n * k / 1e9 + 2
    calls: dict[str, Callable[[], Any]] = {}
    outputs: dict[str, Any] = {}

    def ours(kernel: Any, name: str) -> Callable[[], Any]:
        outputs[name] = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return lambda: kernel(A=a, B=b, C=outputs[name], SA=sa, SB=sb)

    for at, kernel in enumerate(kernels):
        calls[f"plan {at}"] = ours(kernel, f"plan {at}")
    outputs["DeepGEMM"] = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    for name, call in rivals(a, b, sa, sb, outputs["DeepGEMM"]).items():
        try:
            call()
            calls[name] = call
        except Exception as error:  # a rival that does not take the shape
            print(f"  {name}: {str(error).splitlines()[0][:100]}", flush=True)
    sides = {name: graph(call, guess) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name in draw.sample(list(sides), len(sides)):
            times[name].append(microseconds(*sides[name]))
    if "torch" in calls:
        outputs["torch"] = calls["torch"]()
    factors = sa.t().repeat_interleave(BLOCK, 1)[:, :k]
    wide = sb.repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)[:, :k]
    torch.backends.cuda.matmul.allow_tf32 = False
    wanted = (a.float() * factors) @ (b.float() * wide).t()
    errors = {
        name: float((outputs[name].float() - wanted).norm() / wanted.norm()) for name in sides
    }
    ratios = [x / y for x, y in zip(times.get("torch", []), times["plan 0"], strict=False)]
    us = {name: median(own) for name, own in times.items()}
    return Row(shape, us, median(ratios) if ratios else math.nan, errors, [])


def said(text: str) -> str:
    lines = (line.split() for line in text.splitlines())
    return " ".join(f"{' '.join(words)};" for words in lines if words and words[0] in SAID)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=1)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    asked.dtype = "e4m3"
    began, draw, rows = time.monotonic(), random.Random(asked.seed), list[Row]()
    every = list(shapes(asked.count, asked.seed))
    with ThreadPoolExecutor(16) as pool:
        chosen = {shape: texts(shape, asked.plans) for shape in every}
        found = dict(
            zip(
                unique := list(dict.fromkeys(t for each in chosen.values() for t in each)),
                pool.map(compiled, unique),
                strict=True,
            )
        )
    print(f"{len(unique)} kernels in {time.monotonic() - began:.0f} s", flush=True)
    for shape in every:
        legal = [text for text in chosen[shape] if found[text] is not None]
        row = measured(shape, [found[text] for text in legal], draw)
        row.schedules = [said(text) for text in legal]
        rows.append(row)
        wrong = [name for name, error in row.errors.items() if not error < MOST_ERROR]
        print(f"{'x'.join(map(str, shape))}: {row.share:.3f} of torch  {wrong and 'WRONG'}")
        for name, us in sorted(row.us.items(), key=lambda pair: pair[1]):
            what = row.schedules[int(name.split()[1])] if name.startswith("plan") else ""
            print(f"    {name:9} {us:8.2f} us  {row.errors[name]:.1e}  {what}", flush=True)
    for rival in ("torch", "DeepGEMM"):
        shares = sorted(x.us[rival] / x.us["plan 0"] for x in rows if rival in x.us)
        if shares:
            mean = math.exp(fmean(map(math.log, shares)))
            best = math.exp(
                fmean(
                    math.log(x.us[rival] / min(u for n, u in x.us.items() if n.startswith("plan")))
                    for x in rows
                    if rival in x.us
                )
            )
            print(
                f"{len(shares)} shapes: {mean:.3f} of {rival} (least {shares[0]:.2f}); the best "
                f"of the plans {best:.3f}"
            )
    wrong = sum(not error < MOST_ERROR for row in rows for error in row.errors.values())
    print(f"wrong: {wrong}; {time.monotonic() - began:.0f} s")
    if asked.json:
        text = json.dumps({**about(asked), "rows": [asdict(row) for row in rows]}, indent=1)
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
