"""``suggest`` against cuBLAS on random shapes, in every storage order.

    python benchmarks/suggest.py [--seed 9] [--count 200] [--orders 4] [--json FILE]

Extents are drawn log-uniformly from 1 to 10,000; each shape runs in ``--orders`` of the four
storage orders.  f32; cuBLAS computes in float32 (pedantic).  Each round of a pair has a random
order; each kernel is timed for at least 20 ms after a warm-up of at least 15 ms, from CUDA graphs,
with a warm L2 cache; medians of the rounds.  Results are checked after the timing against float64.
Prints the geometric mean and the fifth percentile of cuBLAS's time over ours; exit code 1 if a
result was wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from suggest_cases import LOW, NN, ORDERS, Case, drawn
from suggest_data import Point, interface_of
from suggest_timer import Timer

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.choose import choose
from gemmgen.explore.tune.cubins import CompilingBuilder
from gemmgen.explore.tune.legal_points import Legal
from gemmgen.explore.tune.workers import Workers
from gemmgen.gpu.device import cupy
from gemmgen.schedule.formatting import format_schedule

WARM, TIMED = 15.0, 20.0
"""Milliseconds of a candidate before, and in, a sample."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--orders", type=int, default=4, help="storage orders of each shape")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1e9, help="end after this many")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    rows: list[dict[str, Any]] = []
    for row in measured(cases(arguments), arguments, until):
        rows.append(row)
    if arguments.json:
        text = ",\n ".join(json.dumps(row) for row in rows)
        Path(arguments.json).write_text(f"[\n {text}\n]\n", encoding="utf-8")
    report(rows, len(cases(arguments)))
    sys.stdout.flush()
    os._exit(0 if all(row["checked"] for row in rows) else 1)  # compilers may still be at work


def cases(arguments: argparse.Namespace) -> list[Case]:
    """The known hard cases, then all shapes in one storage order, then in another, so that an early
    end leaves no bias."""
    shapes = drawn(arguments.seed, arguments.count)
    found: list[Case] = [(NN, shape) for shape in LOW]
    for turn in range(arguments.orders):
        for gemm, shape in shapes:
            found.append((ORDERS[(ORDERS.index(gemm) + turn) % len(ORDERS)], shape))
    return found


def text_of(case: Case) -> str:
    """In a worker process: the suggested schedule."""
    return choose(Request.of(*case)).chosen.plan.text


def measured(
    wanted: list[Case], arguments: argparse.Namespace, until: float
) -> Iterator[dict[str, Any]]:
    cp, rng = cupy(), random.Random(arguments.seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        Workers(max(1, min(15, (os.cpu_count() or 2) - 1))) as w,
    ):
        drafts = [w.submit(text_of, case) for case in wanted]
        texts = [w.result(draft) or "" for draft in drafts]
        builder = CompilingBuilder(w, "sm_90", Path(folder))
        points = (Point(number, text) for number, text in enumerate(dict.fromkeys(texts)))
        jobs = {point.text: builder.submit([cast(Legal, point)]) for point in points}
        with cp.cuda.Stream(non_blocking=True) as stream:
            timer = Timer(cp, stream)
            for case, text in zip(wanted, texts, strict=True):
                if time.monotonic() > until:
                    return
                yield measure(case, text, jobs, timer, rng, arguments.rounds)
                timer.forget()


def measure(
    case: Case, text: str, jobs: Any, timer: Timer, rng: random.Random, rounds: int
) -> dict[str, Any]:
    """One case: medians in microseconds, and whether the result was right."""
    from gemmgen.gpu.bench import arrays_of, inputs, timed_case
    from gemmgen.gpu.compare import expected
    from gemmgen.gpu.cublas_calls import run_cublas
    from gemmgen.gpu.launch import Kernel

    request = Request.of(*case)
    plain = interface_of(format_schedule(request.problem))
    timed = timed_case(request.shape)
    values = inputs(plain, timed)
    arrays = arrays_of(plain, values)
    cublas = run_cublas(plain, {**arrays, "C": arrays["C"].copy()})
    (built,) = jobs[text]()
    candidate = built.candidate
    assert candidate is not None, built.reason
    kernel = Kernel("", candidate.interface, candidate.target, files=candidate.files)
    arrays["C"].fill(float("nan"))
    launch = kernel.prepare(**arrays, alpha=1.0, beta=0.0)
    runs: dict[str, tuple[Callable[[], None], int]] = {
        "ours": timer.prepared(launch),
        "cublas": timer.prepared(cublas),
    }
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in rng.sample(sorted(runs), len(runs)):
            samples[name].append(timer.sample(*runs[name], WARM, TIMED))
    ours, rival = (statistics.median(samples[name]) for name in ("ours", "cublas"))
    complaint = expected(candidate.interface, values, timed).difference(arrays["C"], "f32")
    return {
        "gemm": case[0],
        "shape": list(case[1]),
        "us": round(ours, 3),
        "cublas": round(rival, 3),
        "share": round(rival / ours, 4),
        "checked": complaint is None,
        "schedule": text,
    }


def report(rows: list[dict[str, Any]], wanted: int) -> None:
    """Prints the hard cases, the means and the worst cases."""
    low, rest = rows[: len(LOW)], rows[len(LOW) :]
    for row in low:
        print(f"{'x'.join(map(str, row['shape'])):18s} {row['us']:10.2f} us  {row['share']:.3f}")
    shares = sorted(row["share"] for row in rest)
    if not shares:
        return
    mean = math.exp(statistics.fmean(map(math.log, shares)))
    fifth = shares[int(0.05 * len(shares))]
    wrong = sum(not row["checked"] for row in rows)
    print(f"{len(rows)} of {wanted} cases, {wrong} wrong")
    middle = statistics.median(shares)
    print(f"geometric mean {mean:.4f}, fifth percentile {fifth:.4f}, median {middle:.4f}")
    for gemm in ORDERS:
        own = [row["share"] for row in rest if row["gemm"] == gemm]
        if own:
            print(f"  {gemm}: {math.exp(statistics.fmean(map(math.log, own))):.4f} of {len(own)}")
    for row in sorted(rest, key=lambda row: row["share"])[:12]:
        tile = next(x for x in row["schedule"].splitlines() if x.startswith("tile"))
        split = [x for x in row["schedule"].splitlines() if x.startswith("split_k")]
        print(
            f"{row['share']:.3f} {row['us']:8.2f} us {row['gemm'][10:]} {row['shape']}"
            f" {tile[5:]} {' '.join(split)[8:]}"
        )


if __name__ == "__main__":
    sys.exit(main())
