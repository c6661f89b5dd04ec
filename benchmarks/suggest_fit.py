"""Fits the constants of ``suggest``'s cost model to the data of ``suggest_data``.

    python benchmarks/suggest_fit.py DATA.json... [--fold 0] [--sweeps 8]

Coordinate descent: each constant is multiplied and divided by a factor that shrinks from sweep to
sweep, and the value with the least loss is kept.  The loss of a shape is the relative time of the
plans that the model ranks first, as a mean weighted by the estimates, plus a part of the errors of
the estimates, absolute and relative to a shape's mean error; shapes whose fastest plan is much
faster than cuBLAS count less.  One shape in five (``--fold`` says which; -1: none) is held out, and
evaluated with the constants of the others.  Prints the constants as ``cost.Costs`` has them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from suggest_cases import gemm_of

from gemmgen.explore.cost import H200, Costs, Sizes, estimate
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.schedules import Form, SettledForm
from gemmgen.explore.suggest.sizes import EXACT, residents, sizes_of
from gemmgen.gpu.gpus import Gpu

FOLDS = 5
SHARP = 0.08
"""The difference of the estimates' logarithms that changes a weight by a factor e."""
GRAIN = 8
"""Registers are allocated to threads in units of eight."""
ERRORS, RANKS = 0.1, 0.5
"""The weights of the estimates' errors, absolute and relative to the mean error of a shape."""
NEAR = 1.5
"""Plans within this many times the fastest one's time are ranked."""


@dataclass(frozen=True)
class Timed:
    """A plan that was timed; ``us`` is the least of its times."""

    plan: SettledForm
    sizes: Sizes
    us: float


@dataclass(frozen=True)
class Shape:
    """A request, cuBLAS's microseconds, and the plans that were timed."""

    request: Request
    cublas: float
    plans: tuple[Timed, ...]

    @property
    def best(self) -> float:
        return min(timed.us for timed in self.plans)

    @property
    def weight(self) -> float:
        return min(1.0, self.best / self.cublas) ** 2


def read(paths: Iterable[str]) -> list[Shape]:
    """The shapes of some files, whose plans gave right results and fit on a multiprocessor."""
    rows = [row for path in paths for row in json.loads(Path(path).read_text(encoding="utf-8"))]
    found: list[Shape] = []
    for row in rows:
        request = Request.of(gemm_of(row["gemm"], len(row["shape"])), tuple(row["shape"]))
        timed = [timed_of(request, x) for x in row["rows"] if "us" in x]
        timed = [x for x in timed if x.plan.exact <= x.plan.divides]
        timed = [x for x in timed if x.sizes.resident]
        if timed:
            found.append(Shape(request, row["cublas"], tuple(timed)))
    return found


def timed_of(request: Request, row: dict[str, Any]) -> Timed:
    """A row of the data; resident blocks follow from the registers that the compiler used."""
    plan = plan_of(request, row)
    taken = -(-row["regs"] // GRAIN) * GRAIN if row.get("regs") else None
    sizes = replace(sizes_of(plan), resident=residents(plan, taken))
    return Timed(plan, sizes, min(row["us"]))


def plan_of(request: Request, row: dict[str, Any]) -> SettledForm:
    kind, m, n, k, rows, columns, warp_m, warp_n, stages, blocks = row["form"]
    form = Form(kind, (m, n, k), (rows, columns), (warp_m, warp_n), stages, blocks)
    options = {
        name: row[name] for name in ("parts", "groups", "raster", "through", "exact", "piece")
    }
    return SettledForm(form, request, **options)


def expected(timed: Timed, gpu: Gpu, costs: Costs) -> float:
    """Microseconds."""
    return estimate(timed.sizes, gpu, costs) * (EXACT if timed.plan.exact else 1.0) * 1e6


def loss(shapes: Sequence[Shape], costs: Costs) -> float:
    """The objective of the fit."""
    total = sum(shape.weight * _loss(shape, costs) for shape in shapes)
    return total / sum(shape.weight for shape in shapes)


def _loss(shape: Shape, costs: Costs) -> float:
    gpu, best = shape.request.gpu, math.log(shape.best)
    logs = [math.log(expected(x, gpu, costs)) for x in shape.plans]
    times = [math.log(x.us) for x in shape.plans]
    least = min(logs)
    weights = [math.exp((least - x) / SHARP) for x in logs]
    regret = sum(w * (t - best) for w, t in zip(weights, times, strict=True)) / sum(weights)
    errors = fmean(min(1.0, abs(x - t)) for x, t in zip(logs, times, strict=True))
    near = [
        a - b for a, b, x in zip(logs, times, shape.plans, strict=True) if x.us < NEAR * shape.best
    ]
    ranks = fmean(min(0.3, abs(x - fmean(near))) for x in near)
    return regret + ERRORS * errors + RANKS * ranks


def fit(shapes: Sequence[Shape], costs: Costs, sweeps: int) -> Costs:
    """The constants with the least loss that coordinate descent finds."""
    least, step = loss(shapes, costs), 0.4
    for sweep in range(sweeps):
        for name in [field.name for field in fields(Costs)]:
            for move in (1 + step, 1 / (1 + step)):
                tried: Costs = replace(costs, **{name: getattr(costs, name) * move})
                found = loss(shapes, tried)
                if found < least:
                    costs, least = tried, found
                    break
        step *= 0.75
        print(f"sweep {sweep + 1}: loss {least:.4f}", file=sys.stderr, flush=True)
    return costs


def judge(what: str, shapes: Sequence[Shape], costs: Costs) -> None:
    """Shares of cuBLAS: of the fastest plan, and of the one that the model chooses."""
    best: list[float] = []
    chosen: list[float] = []
    for shape in shapes:
        gpu = shape.request.gpu
        first = min(shape.plans, key=lambda x: expected(x, gpu, costs))
        best.append(shape.cublas / shape.best)
        chosen.append(shape.cublas / first.us)
    for name, shares in (("fastest", best), ("chosen", chosen)):
        mean, low = math.exp(fmean(map(math.log, shares))), sorted(shares)[len(shares) // 20]
        under = sum(share < 0.9 for share in shares) / len(shares)
        print(f"{what}, {name}: mean {mean:.3f}, p5 {low:.3f}, {under:.1%} under .9")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--fold", type=int, default=0, help="which fifth is held out; -1: none")
    parser.add_argument("--sweeps", type=int, default=8)
    arguments = parser.parse_args()
    shapes = read(arguments.data)
    held = [x for at, x in enumerate(shapes) if at % FOLDS == arguments.fold]
    own = [x for at, x in enumerate(shapes) if at % FOLDS != arguments.fold]
    costs = fit(own, H200, arguments.sweeps)
    judge("fitted", own, costs)
    if held:
        judge("held out", held, costs)
    for name, value in asdict(costs).items():
        print(f"    {name}: float = {value:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
