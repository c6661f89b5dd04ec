"""Fits the constants of ``explore.warpgroup_cost`` to times of ``docs/data/warpgroups*.json``.

    python benchmarks/warpgroup_fit.py [--sweeps 12] [--folds 4]

Coordinate descent: each constant is multiplied and divided by a factor that shrinks from sweep to
sweep, and the value with the least loss is kept.  The loss of a shape is the relative time of the
plans that the model ranks first, weighted by the estimates, and a part of the estimates' errors.
Prints the constants as ``WarpgroupCosts`` has them, how much longer the chosen plan takes than the
fastest one that was timed, and PyTorch's time over it; then the same for shapes that the constants
were not fitted to, fold by fold.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupForm
from gemmgen.explore.suggest.warpgroup_plans import sizes_of
from gemmgen.explore.warpgroup_cost import H200, WarpgroupCosts, WarpgroupSizes, estimate

DATA = Path(__file__).parents[1] / "docs" / "data" / "warpgroups.json"
FILES = tuple(sorted(DATA.parent.glob("warpgroups*.json")))
BYTES = tuple(sorted(DATA.parent.glob("bytes_*.json")))
SHARP = 0.06
"""The difference of the estimates' logarithms that changes a weight by a factor e."""
KNOWN = ("memory", "norm")
"""Constants that are not fitted: the bandwidth is measured, and few shapes are bound by it."""
NEAR = 0.4
"""Plans whose time's logarithm is that near the fastest one's are ranked."""


@dataclass(frozen=True)
class Timed:
    """A request, PyTorch's microseconds, and plans with theirs."""

    request: Request
    torch: float
    sizes: tuple[WarpgroupSizes, ...]
    us: tuple[float, ...]


def timed_sizes(request: Request, row: Sequence[Any]) -> WarpgroupSizes:
    """A row of the data, without its time."""
    rows, columns, k, consumers, pingpong, along_m, along_n, parts, *more = row
    many, staged, stages, *flags = more
    cluster = along_m, along_n
    exchanged, beside, twice = (*map(bool, flags), False, False, False)[:3]
    form = WarpgroupForm((rows, columns, k), consumers, bool(pingpong), cluster, parts, exchanged)
    own = request.exchanged if exchanged else request
    sizes = sizes_of(
        form,
        own,
        persistent=bool(many),
        staged=bool(staged),
        plain=staged == 2,
        stages=stages,
        slices=1 + twice,
    )
    return replace(sizes, producer=parts == 1 or beside)


def read(paths: Sequence[Path] = FILES) -> list[Timed]:
    found: list[Timed] = []
    for data in (json.loads(path.read_text(encoding="utf-8")) for path in paths):
        for case in data["shapes"]:
            request = Request.of(case["gemm"], tuple(case["shape"]), dtype=data["dtype"])
            sizes = tuple(timed_sizes(request, row[:-1]) for row in case["plans"])
            found.append(Timed(request, case["torch"], sizes, tuple(x[-1] for x in case["plans"])))
    return [timed for timed in found if timed.us]


def expected(timed: Timed, costs: WarpgroupCosts) -> list[float]:
    """Microseconds of each plan."""
    request, found = timed.request, list[float]()
    for sizes in timed.sizes:
        shape = request.exchanged.shape if sizes.swapped else request.shape
        found.append(estimate(sizes, shape, request.gpu, costs) * 1e6)
    return found


def loss(cases: Sequence[Timed], costs: WarpgroupCosts) -> float:
    return fmean(_loss(timed, costs) for timed in cases)


def _loss(timed: Timed, costs: WarpgroupCosts) -> float:
    logs, times = [math.log(x) for x in expected(timed, costs)], [math.log(x) for x in timed.us]
    least, best = min(logs), min(times)
    weights = [math.exp((least - x) / SHARP) for x in logs]
    regret = sum(w * (t - best) for w, t in zip(weights, times, strict=True)) / sum(weights)
    errors = fmean(min(1.0, abs(x - t)) for x, t in zip(logs, times, strict=True))
    near = [x - t for x, t in zip(logs, times, strict=True) if t < best + NEAR]
    ranks = fmean(min(0.3, abs(x - fmean(near))) for x in near)
    return regret + 0.05 * errors + 0.4 * ranks + 0.05 * abs(fmean(near))


def fit(cases: Sequence[Timed], costs: WarpgroupCosts, sweeps: int) -> WarpgroupCosts:
    """The constants with the least loss that coordinate descent finds."""
    least, step = loss(cases, costs), 0.5
    for _ in range(sweeps):
        for name in (x.name for x in fields(WarpgroupCosts) if x.name not in KNOWN):
            for move in (1 + step, 1 / (1 + step)):
                tried: WarpgroupCosts = replace(costs, **{name: getattr(costs, name) * move})
                if (found := loss(cases, tried)) < least:
                    costs, least = tried, found
                    break
        step *= 0.75
    return costs


def chosen(cases: Sequence[Timed], costs: WarpgroupCosts) -> list[tuple[float, float]]:
    """``outcome`` of the model's choice for each case."""
    return [outcome(timed, expected(timed, costs)) for timed in cases]


def outcome(timed: Timed, estimates: Sequence[float]) -> tuple[float, float]:
    """How much longer the plan with the least estimate takes than the fastest one, and PyTorch's
    time over its."""
    us = timed.us[estimates.index(min(estimates))]
    return us / min(timed.us), timed.torch / us


def summary(found: Sequence[tuple[float, float]]) -> str:
    """Geometric means, and the twentieth part's bound."""
    losses, shares = sorted(x for x, _ in found), sorted(x for _, x in found)
    means = [math.exp(fmean(map(math.log, x))) for x in (losses, shares)]
    tail = losses[len(losses) * 19 // 20], shares[len(shares) // 20]
    return (
        f"{means[0]:.3f} times as long as the fastest (95%: {tail[0]:.2f}, most {losses[-1]:.2f}); "
        f"{means[1]:.3f} of PyTorch (5%: {tail[1]:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=12)
    parser.add_argument("--folds", type=int, default=4)
    asked = parser.parse_args()
    cases = read()
    costs = fit(cases, H200, asked.sweeps)
    for name, value in asdict(costs).items():
        print(f"    {name}: float = {value:.3g}")
    print(f"{len(cases)} shapes: {summary(chosen(cases, costs))}")
    if not asked.folds:
        return
    held_out: list[tuple[float, float]] = []
    for fold in range(asked.folds):
        others = [x for at, x in enumerate(cases) if at % asked.folds != fold]
        held_out += chosen(cases[fold :: asked.folds], fit(others, H200, asked.sweeps))
    print(f"held out: {summary(held_out)}")


if __name__ == "__main__":
    main()
