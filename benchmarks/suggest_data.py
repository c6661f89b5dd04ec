"""Times the candidates of ``suggest`` and cuBLAS: the data that its cost model is fitted to.

    python benchmarks/suggest_data.py --json FILE [--seed 1] [--count 100] [--seconds 200]

Shapes are drawn log-uniformly, extents 1 to 10,000, each with one of the four storage orders, after
a list of known ones.  Worker processes compile kernels during the timing.  Each candidate is
launched from a CUDA graph, with about 3 ms of warm-up and 6 ms timed, twice, in random order; its
result is compared with cuBLAS's.  A row has the shape, the storage order, and microseconds for
each candidate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from suggest_cases import Case, drawn, known
from suggest_timer import Timer

from gemmgen.base.errors import GemmgenError
from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.choose import LARGE, Option, options
from gemmgen.explore.suggest.schedules import SettledForm
from gemmgen.explore.suggest.sizes import seconds
from gemmgen.explore.tune.cubins import CompilingBuilder
from gemmgen.explore.tune.legal_points import Legal
from gemmgen.explore.tune.workers import Workers
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule


def candidates(request: Request, most: int, seed: int) -> list[Option]:
    """The best by the model (no form more than twice, no tile more than four times), the best of
    each kind, the same plans with copies through registers, and random others."""
    rng = random.Random(seed)
    ranked = sorted(options(request), key=lambda option: option.seconds)
    least = ranked[0].seconds
    chosen: list[Option] = []
    forms: dict[Any, int] = {}

    def take(option: Option) -> None:
        plan = option.plan
        keys = {(plan.form, plan.through, plan.piece): 2, (plan.form.tile[:2], plan.through): 4}
        if option not in chosen and all(forms.get(key, 0) < most for key, most in keys.items()):
            for key in keys:
                forms[key] = forms.get(key, 0) + 1
            chosen.append(option)

    for option in ranked:
        if len(chosen) < most * 0.6:
            take(option)
    for option in [o for o in chosen if _could_go_through(o.plan)][:3]:
        form = replace(option.plan.form, stages=2)
        plan = replace(option.plan, form=form, through=True)
        take(Option(plan, seconds(plan)))
    for kind in ("block", "lanes", "direct", "tensor"):
        of_kind = [o for o in ranked if o.plan.form.kind == kind and o.seconds < 2 * least]
        for option in of_kind[:1]:
            take(option)
    rest = [o for o in ranked if o.seconds < 1.5 * least and o not in chosen]
    rng.shuffle(rest)
    for option in rest:
        if len(chosen) >= most:
            break
        take(option)
    return chosen


def _could_go_through(plan: SettledForm) -> bool:
    """Whether a large transposed tile could be copied through registers, but is not."""
    large = plan.form.kind == "block" and plan.form.tile[0] * plan.form.tile[1] >= LARGE
    return large and not plan.through and any(plan.transposed(role) for role in plan.staged)


@cache
def interface_of(text: str) -> Any:
    return compile_source(Source(text)).interface


def cases_of(arguments: argparse.Namespace) -> list[Case]:
    """Random cases interleaved with those of a file or known ones, so that an early end leaves no
    bias."""
    first = known()
    if arguments.cases:
        text = Path(arguments.cases).read_text(encoding="utf-8")
        first = [(gemm, tuple(shape)) for gemm, shape in json.loads(text)]
    drafts = itertools.zip_longest(first, drawn(arguments.seed, arguments.count))
    return [case for pair in drafts for case in pair if case is not None][arguments.start :]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", metavar="FILE", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--most", type=int, default=18, help="candidates of a shape")
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--start", type=int, default=0, help="leave this many shapes out")
    parser.add_argument(
        "--cases", metavar="FILE", help="in place of known ones: [[gemm, shape], ...]"
    )
    parser.add_argument("--dry", action="store_true", help="count kernels; no GPU is needed")
    arguments = parser.parse_args()
    began = time.monotonic()
    order = cases_of(arguments)
    requests = [Request.of(*case) for case in order]
    rows: list[dict[str, Any]] = []
    deadline = began + arguments.seconds
    with (
        tempfile.TemporaryDirectory() as folder,
        Workers(max(1, min(15, (os.cpu_count() or 2) - 1))) as w,
    ):
        drafts = [w.submit(candidates, r, arguments.most, at) for at, r in enumerate(requests)]
        found = [(r, w.result(draft) or []) for r, draft in zip(requests, drafts, strict=True)]
        texts = dict.fromkeys(o.plan.text for _, chosen in found for o in chosen)
        print(
            f"{len(found)} shapes, {sum(len(c) for _, c in found)} candidates,",
            len(texts),
            "kernels",
        )
        if arguments.dry:
            return 0
        builder = CompilingBuilder(w, "sm_90", Path(folder))
        points = (Point(number, text) for number, text in enumerate(texts))
        jobs = {point.text: builder.submit([cast(Legal, point)]) for point in points}
        print(f"submitted at {time.monotonic() - began:.1f} s", flush=True)
        try:
            for row in measured(found, jobs, deadline):
                rows.append(row)
        finally:
            path = Path(arguments.json)
            before = json.loads(path.read_text()) if path.exists() else []
            path.write_text(json.dumps(before + rows, separators=(",", ":")))
            Path(f"{arguments.json}.next").write_text(str(arguments.start + len(rows) + 1))
    summary(rows)
    print(f"{len(rows)} shapes in {time.monotonic() - began:.0f} s")
    sys.stdout.flush()
    os._exit(0)


@dataclass(frozen=True)
class Point:
    """A point for a builder to compile."""

    number: int
    text: str


def measured(found: Any, jobs: Any, deadline: float) -> Iterator[dict[str, Any]]:
    import cupy as cp

    with cp.cuda.Stream(non_blocking=True) as stream:
        timer = Timer(cp, stream)
        warm = cp.ones((4096, 4096), "float32")
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            warm @ warm
            stream.synchronize()
        del warm
        for at, (request, chosen) in enumerate(found):
            if time.monotonic() > deadline:
                print("out of time")
                return
            try:
                row = measure(request, chosen, jobs, timer, cp, deadline)
                timer.forget()
            except Exception as error:  # a failure is reported, and the other shapes continue
                print(at, request.shape, type(error).__name__, str(error)[:200], flush=True)
                if "CUDA" in type(error).__name__:  # nothing runs in this process any more
                    return
                continue
            yield row
            if time.monotonic() > deadline:
                return


def measure(
    request: Request, chosen: list[Option], jobs: Any, timer: Timer, cp: Any, deadline: float
) -> dict[str, Any]:
    """One shape: candidates and cuBLAS interleaved, twice."""
    from gemmgen.gpu.bench import arrays_of, inputs, timed_case
    from gemmgen.gpu.cublas_calls import run_cublas
    from gemmgen.gpu.launch import Kernel

    plain = interface_of(format_schedule(request.problem))
    arrays = arrays_of(plain, inputs(plain, timed_case(request.shape)))
    want = arrays["C"].copy()
    cublas = run_cublas(plain, {**arrays, "C": want})
    cublas()
    bound = 2e-5 * math.sqrt(request.shape[2]) * max(1.0, math.log2(request.shape[2] + 1))
    runs: dict[int, tuple[Callable[[], None], int]] = {-1: timer.prepared(cublas)}
    rival = timer.once(cublas)
    rows: list[dict[str, Any]] = []
    for at, option in enumerate(chosen):
        plan = option.plan
        form = plan.form
        row: dict[str, Any] = {
            "form": [form.kind, *form.tile, *form.micro, *form.warp, form.stages, form.blocks],
            "parts": plan.parts,
            "groups": plan.groups,
            "through": plan.through,
            "exact": plan.exact,
            "piece": plan.piece,
            "raster": plan.raster,
            "est": round(option.seconds * 1e6, 2),
        }
        rows.append(row)
        try:
            (built,) = jobs[plan.text]()
        except GemmgenError as error:
            row["error"] = str(error)[:200]
            continue
        candidate = built.candidate
        if candidate is None:
            row["error"] = built.reason[:100]
            continue
        row["regs"], row["spills"] = built.registers, built.spills
        kernel = Kernel("", candidate.interface, candidate.target, files=candidate.files)
        arrays["C"].fill(float("nan"))
        launch = kernel.prepare(**arrays, alpha=1.0, beta=0.0)
        launch()
        try:
            timer.stream.synchronize()
        except Exception:
            print("the kernel of this schedule failed:", plan.text, flush=True)
            raise
        difference = float(cp.abs(arrays["C"] - want).max())
        if not difference <= bound:
            row["error"] = f"off by {difference}"
            continue
        rough = timer.once(launch)
        if rough > 3 * rival + 0.01:
            row["us"] = [rough * 1e3]
            row["rough"] = True
            continue
        runs[at] = timer.prepared(launch)
    for turn in range(2):
        for at in random.sample(sorted(runs), len(runs)):
            us = timer.sample(*runs[at], 3.0, 6.0)
            if at >= 0:
                rows[at].setdefault("us", []).append(round(us, 3))
            else:
                rival = us if turn == 0 else min(rival, us)
    return {
        "gemm": request.problem.gemm.a.indices[-1] + request.problem.gemm.b.indices[-1],
        "shape": request.shape,
        "cublas": round(rival, 3),
        "rows": rows,
    }


def summary(rows: list[dict[str, Any]]) -> None:
    """Prints cuBLAS's time over those of the best candidate and of the model's first."""
    best: list[float] = []
    first: list[float] = []
    errors: dict[str, int] = {}
    for row in rows:
        times = [min(c["us"]) for c in row["rows"] if "us" in c]
        for c in row["rows"]:
            if "error" in c:
                errors[c["error"][:60]] = errors.get(c["error"][:60], 0) + 1
        if not times:
            continue
        best.append(row["cublas"] / min(times))
        least = min((c for c in row["rows"] if "us" in c), key=lambda c: c["est"])
        first.append(row["cublas"] / min(least["us"]))
    for name, shares in (("best candidate", best), ("model's first", first)):
        shares = sorted(shares)
        if shares:
            mean = math.exp(sum(map(math.log, shares)) / len(shares))
            low = shares[int(0.05 * len(shares))]
            print(f"{name}: geometric mean {mean:.3f}, fifth percentile {low:.3f}")
    for error, count in list(errors.items())[:5]:
        print(count, error)


if __name__ == "__main__":
    sys.exit(main())
