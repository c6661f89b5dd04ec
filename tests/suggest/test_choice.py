"""The model's choice among plans that were timed on a GPU: ``docs/data/suggest.json``."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.schedules import Form, SettledForm
from gemmgen.explore.suggest.sizes import seconds

DATA = Path(__file__).parents[2] / "docs" / "data" / "suggest.json"
LOSS, SHARE, FIFTH, WORST = 1.07, 1.3, 0.8, 1.7
"""How much longer than the fastest plan the chosen one takes, the geometric mean; cuBLAS's time
over its own, the geometric mean and the fifth percentile; the most that a single choice loses."""


def _plan(request: Request, row: list[Any]) -> SettledForm:
    kind, m, n, k, rows, columns, warp_m, warp_n, stages, blocks, *rest = row
    parts, groups, raster, through, piece, exact, _ = rest
    form = Form(kind, (m, n, k), (rows, columns), (warp_m, warp_n), stages, blocks)
    return SettledForm(form, request, parts, groups, raster, bool(through), bool(exact), piece)


def _shares() -> list[tuple[float, float]]:
    """For each shape how much longer the choice takes than the best, and cuBLAS's time over it."""
    found: list[tuple[float, float]] = []
    for case in json.loads(DATA.read_text(encoding="utf-8"))["shapes"]:
        request = Request.of(case["gemm"], tuple(case["shape"]))
        timed = [(seconds(_plan(request, row)), row[-1]) for row in case["plans"]]
        chosen = min(timed)[1]
        found.append((chosen / min(us for _, us in timed), case["cublas"] / chosen))
    return found


def test_the_choice_is_near_the_fastest_of_the_plans_that_were_timed() -> None:
    found = _shares()
    assert len(found) >= 40
    assert exp(fmean(log(loss) for loss, _ in found)) < LOSS
    assert max(loss for loss, _ in found) < WORST
    shares = sorted(share for _, share in found)
    assert exp(fmean(map(log, shares))) > SHARE
    assert shares[len(shares) // 20] > FIFTH


def test_the_estimates_are_what_was_timed_within_a_fifth() -> None:
    """Half of them; a constant that lost its meaning shows here."""
    errors: list[float] = []
    for case in json.loads(DATA.read_text(encoding="utf-8"))["shapes"]:
        request = Request.of(case["gemm"], tuple(case["shape"]))
        errors += [abs(log(seconds(_plan(request, r)) * 1e6 / r[-1])) for r in case["plans"]]
    assert sorted(errors)[len(errors) // 2] < log(1.2)
