"""What a user gets without a schedule: ``gemmgen.torch.op`` of a bare gemm against ``torch.mm``.

    python benchmarks/default_path.py [--seed 1] [--count 60] [--dtype bf16] [--json FILE]
    python benchmarks/default_path.py --few-rows [--dtype bf16] [--json FILE]
    python benchmarks/default_path.py --update docs/performance.md

``count`` shapes are drawn, extents log-uniform from 32 to 8192 in multiples of 8, with a storage
order each (of e4m3 and i8 16 to 8192 rows, multiples of 16, A[m, k] * B[n, k]), and the named ones
of ``NAMED`` come first; with ``--few-rows`` the shapes are those of ``FEW_ROWS`` alone, and the
share of the memory's bandwidth is printed.  Both sides are replayed from a CUDA graph, at least 20
ms after 15 ms of themselves, in an order drawn anew each round; the result is the median ratio of
the rounds.  Outputs are compared with a product in f32.  ``--update`` measures nothing: it writes
the table of ``docs/data/default_path_*.json`` into a page.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

from vendors import TYPES, drawn, most_error, stated, vendor_call

from gemmgen.base.source import Source
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule

NAMED = (
    *((size, size, size) for size in (512, 1024, 2048, 4096, 8192)),
    *((2048, 768, 768), (2048, 2304, 768), (2048, 3072, 768), (2048, 768, 3072)),
    *((4096, 4096, 14336), (8192, 28672, 4096), (128, 7168, 16384), (512, 4096, 4096)),
)
FEW_ROWS = tuple(
    (rows, n, k)
    for n, k in ((7168, 2048), (4096, 4096), (8192, 8192))
    for rows in (1, 8, 16, 32, 64, 128)
)
"""Products that read a matrix of weights once (``--few-rows``)."""
ORDERS = {"TN": "A[m, k] * B[n, k]", "NN": "A[m, k] * B[k, n]", "NT": "A[k, m] * B[k, n]"}
ORDERS["TT"] = "A[k, m] * B[n, k]"
"""The storage orders, by the letters of a column-major library."""
WARM, TIMED, ROUNDS = 15.0, 20.0, 3
"""Milliseconds."""


@dataclass(frozen=True)
class Row:
    shape: tuple[int, int, int]
    order: str
    torch_us: float
    ours_us: float
    share: float
    error: float
    schedule: str


def cases(seed: int, count: int, dtype: str = "bf16") -> list[tuple[tuple[int, int, int], str]]:
    draw, bytes_ = random.Random(seed), dtype in ("e4m3", "i8")
    found = [(shape, "TN") for shape in NAMED]
    for _ in range(count):
        step, least = (16, (4, 5, 5)) if bytes_ else (8, (5, 5, 5))
        m, n, k = (int(2 ** draw.uniform(low, 13)) // step * step for low in least)
        found.append(((m, n, k), "TN" if bytes_ else draw.choice(list(ORDERS))))
    return found


def compiled(case: tuple[tuple[int, int, int], str], dtype: str) -> None:
    """Fills the cache of cubins: compiling is not what is measured."""
    from gemmgen.explore.suggest import suggest
    from gemmgen.gpu import device, store

    shape, order = case
    emitted = suggest(f"C[m, n] = {ORDERS[order]}", shape, dtype=TYPES[dtype]).emitted
    store.stored(emitted.text, device.arch_for(emitted.target, *device.capability(0)))


def graph(call: Callable[[], Any], most_us: float) -> tuple[Any, int]:
    import torch

    count = max(1, min(20, int(400 / most_us)))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made, stream=stream):
        for _ in range(count):
            call()
    return made, count


def microseconds(made: Any, count: int) -> float:
    """Of one call; the graph was warmed by itself."""
    import torch

    def run(times: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            made.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    one = max(run(1), run(1), 1e-3)
    run(math.ceil(WARM / one))
    times = math.ceil(TIMED / one)
    return run(times) / times / count * 1e3


def measured(case: tuple[tuple[int, int, int], str], dtype: str, draw: random.Random) -> Row:
    import torch

    import gemmgen.torch
    from gemmgen.torch.operator import define

    (m, n, k), order = case
    a = drawn((m, k) if order in ("TN", "NN") else (k, m), dtype)
    b = drawn((n, k) if order in ("TN", "TT") else (k, n), dtype)
    left = a if order in ("TN", "NN") else a.t()
    right = b.t() if order in ("TN", "TT") else b
    text = f"gemm C[m, n] = {ORDERS[order]}\ndtype {stated(dtype)}\n"
    name = f"bench::{order.lower()}_{dtype}"
    op = gemmgen.torch.op(text, name=name)
    guess = 2 * m * n * k / 6e8 + 2
    call = vendor_call(left, right, dtype)  # it holds tensors that its graph reads
    sides = {"torch": graph(call, guess), "ours": graph(lambda: op(a, b), guess)}
    ratios, times = list[float](), {name: list[float]() for name in sides}
    for _ in range(ROUNDS):
        us = {side: microseconds(*sides[side]) for side in draw.sample(list(sides), 2)}
        ratios.append(us["torch"] / us["ours"])
        for side, took in us.items():
            times[side].append(took)
    torch.backends.cuda.matmul.allow_tf32 = False
    wanted = left.float() @ right.float()
    error = float((op(a, b).float() - wanted).norm() / wanted.norm())
    forward = define(name, parse_schedule(Source(text)), own=False).forward
    lines = format_schedule(forward.choice({"A": a, "B": b}).emitted.schedule).splitlines()
    said = " ".join(" ".join(x.split()) + ";" for x in lines if x.split()[0] in SAID)
    return Row((m, n, k), order, *(median(times[x]) for x in sides), median(ratios), error, said)


SAID = ("tile", "tensor_core", "warp_specialize", "cluster", "split_k")
"""The lines that are printed of the schedule that ran."""


def bandwidth(row: Row, asked: argparse.Namespace) -> str:
    """The share of the memory's bandwidth, if each matrix is moved once."""
    if not asked.few_rows:
        return ""
    m, n, k = row.shape
    of_input, of_output = {"f32": (4, 4), "e4m3": (1, 2), "i8": (1, 4)}.get(asked.dtype, (2, 2))
    moved = of_input * (m * k + n * k) + of_output * m * n
    return f" {moved / (row.ours_us * 1e-6) / gpu_named('H200').memory:.0%} of memory bandwidth"


def summary(rows: Sequence[Row]) -> str:
    shares = sorted(row.share for row in rows)
    mean = math.exp(fmean(map(math.log, shares)))
    return f"{len(rows)} shapes: {mean:.3f} of torch (5%: {shares[len(rows) // 20]:.2f})"


def table(files: Sequence[Path]) -> str:
    """The page's table: the named shapes one by one, and the drawn ones together."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    lines = [f"| M x N x K | {' | '.join(run['dtype'] for run in runs)} |", "| --- |"]
    lines[1] += " ---: |" * len(runs)
    for at, shape in enumerate(NAMED):
        shares = [f"{run['rows'][at]['share']:.0%}" for run in runs]
        lines.append(f"| {' x '.join(map(str, shape))} | {' | '.join(shares)} |")
    drawn = [sorted(row["share"] for row in run["rows"][len(NAMED) :]) for run in runs]
    means = [math.exp(fmean(map(math.log, shares))) for shares in drawn]
    fifths = [shares[len(shares) // 20] for shares in drawn]
    cells = [
        f"{mean:.0%} of {len(shares)} (5%: {fifth:.0%})"
        for mean, fifth, shares in zip(means, fifths, drawn, strict=True)
    ]
    lines.append(f"| random shapes | {' | '.join(cells)} |")
    about = runs[0]
    return "\n".join(lines) + (
        f"\n\nOn an {about['gpu']} (driver {about['driver']}, PyTorch {about['torch']}), "
        f"{about['date']}: `python benchmarks/default_path.py --seed {about['seed']} "
        f"--count {len(drawn[0])}`.\n"
    )


def files() -> list[Path]:
    """The measurements that the page shows."""
    return sorted((Path(__file__).parents[1] / "docs" / "data").glob("default_path_*.json"))


def updated(page: str) -> str:
    """The page with the table between its marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table(files())}{END}{rest.split(END)[1]}"


BEGIN, END = "<!-- default path -->", "<!-- /default path -->"


def about(asked: argparse.Namespace) -> dict[str, Any]:
    """What a file of measurements says of itself."""
    import torch

    from gemmgen.explore.results.measured_result import MachineInfo

    here, today = MachineInfo.here(0), datetime.now(UTC).date().isoformat()
    own = {"date": today, "seed": asked.seed, "dtype": asked.dtype}
    return {"gpu": here.gpu, "driver": here.driver, "torch": torch.__version__, **own}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--dtype", choices=tuple(TYPES), default="bf16")
    parser.add_argument("--few-rows", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--update", type=Path)
    asked = parser.parse_args()
    if asked.update:
        page = asked.update.read_text(encoding="utf-8")
        asked.update.write_text(updated(page), encoding="utf-8")
        return
    few = [(shape, "TN") for shape in FEW_ROWS]
    began, drawn = (
        time.monotonic(),
        few if asked.few_rows else cases(asked.seed, asked.count, asked.dtype),
    )
    with ProcessPoolExecutor(16, multiprocessing.get_context("spawn")) as pool:
        for each in [pool.submit(compiled, case, asked.dtype) for case in drawn]:
            each.result()
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    draw, rows = random.Random(asked.seed), list[Row]()
    for case in drawn:
        row = measured(case, asked.dtype, draw)
        rows.append(row)
        right = "" if row.error < most_error(asked.dtype) else f"  WRONG: {row.error:.1e}"
        print(
            f"{'x'.join(map(str, row.shape)):>16} {row.order} torch {row.torch_us:8.2f} us, ours "
            f"{row.ours_us:8.2f} us, {row.share:.3f}{bandwidth(row, asked)}  {row.schedule}{right}",
            flush=True,
        )
    named = len(rows) if asked.few_rows else len(NAMED)
    print(f"named, {summary(rows[:named])}")
    if rows[named:]:
        print(f"drawn, {summary(rows[named:])}")
    wrong = sum(row.error >= most_error(asked.dtype) for row in rows)
    print(f"wrong: {wrong}; {time.monotonic() - began:.0f} s")
    if asked.json:
        found = {**about(asked), "rows": [asdict(row) for row in rows]}
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
