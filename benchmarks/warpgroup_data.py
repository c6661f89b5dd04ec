"""Times plans of ``explore.suggest`` for random shapes: what ``warpgroup_fit.py``
fits the cost model to.

    python benchmarks/warpgroup_data.py --seed 7 --count 120 --plans 22 --seconds 300 --json FILE
    python benchmarks/warpgroup_data.py --named --dtype f16 --json FILE
    python benchmarks/warpgroup_data.py --dtype e4m3 --json FILE

With ``--named`` the shapes are the named ones of ``default_path.py``, with ``--few-rows`` those of
few rows there, with ``--rows`` C has up to so many; ``--slow`` adds those of a run of
``default_path.py`` that are slower than PyTorch.  Otherwise shapes and storage orders are drawn
as by ``default_path.py``.  Of each shape the ``--first`` plans that ``suggest`` ranks first, and as
many with swapped operands, are timed, since a choice among thousands finds the plans whose
estimates err most, and others at random among those that it expects to take up to ``--within``
times as long; some of them with other stages, without persistence or with C stored directly.
PyTorch is timed before, between and after them: ``torch.mm``, and of bytes ``_scaled_mm`` with its
fast accumulators and ``_int_mm``, whose shapes are multiples of 16, A[m, k] * B[n, k].  Graphs are
replayed; wrong results are left out.  Kernels are compiled while others are timed.  It ends after
``--seconds``, with the shapes that it has.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from default_path import FEW_ROWS, NAMED, ORDERS, graph, microseconds
from vendors import TYPES, drawn, most_error, vendor_call

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_ranking import fastest
from gemmgen.ir.target import TARGETS

MOST_RANKED = 400
"""Plans that the others are drawn from."""
PLANS = (
    "tile rows columns k, consumers, pingpong, cluster rows columns, parts, persistent, staged "
    "(2: not swizzled), stages, 1 if operands are swapped, 1 if split K is beside a producer, 1 if "
    "C has two slices, us"
)
CODE = 2
"""The version of the emitted code (``shipped_results.py``)."""
SLOW = 0.92
"""A share of PyTorch's speed below which ``--slow`` takes a shape."""
PIECE = 6
"""Plans between two readings of PyTorch."""


def varied(plan: WarpgroupPlan, draw: random.Random) -> WarpgroupPlan:
    """The plan, or one with fewer stages, a tile for each block, or C stored directly."""
    sizes = plan.sizes
    if draw.random() < 0.25 and sizes.persistent and not sizes.pingpong:
        sizes = replace(sizes, persistent=False)
    if draw.random() < 0.2 and sizes.staged:
        sizes = replace(sizes, staged=False)
    if draw.random() < 0.4 and not sizes.persistent:
        target = TARGETS["sm_90a"]
        half = target.all_shared // 2 - target.reserved - 1024
        few = (half - (sizes.shared - sizes.stages * sizes.stage_bytes)) // sizes.stage_bytes
        stages = draw.choice((few, sizes.steps(plan.request.shape[2])))
        if stages >= 2:
            sizes = replace(sizes, stages=min(stages, sizes.stages))
    return replace(plan, sizes=sizes)


def chosen(request: Request, asked: argparse.Namespace, draw: random.Random) -> list[WarpgroupPlan]:
    """The plans to time: one of each text."""
    ranked = fastest(request, MOST_RANKED)
    if not ranked:
        return []
    first = [
        plan
        for swapped in (False, True)
        for plan in [x for x in ranked if x.form.swapped == swapped][: asked.first]
    ]
    rest = (x for x in ranked if x not in first)
    near = [x for x in rest if x.seconds <= asked.within * ranked[0].seconds]
    others = draw.sample(near, min(len(near), 2 * asked.plans))
    found: dict[str, WarpgroupPlan] = {}
    for plan in (*first, *(varied(plan, draw) for plan in others)):
        if len(found) < asked.plans:
            found.setdefault(plan.text, plan)
    return list(found.values())


def row(plan: WarpgroupPlan, us: float) -> list[int | float]:
    """A plan of the data, as ``warpgroup_fit.timed_sizes`` reads it."""
    form, sizes = plan.form, plan.sizes
    flags = form.swapped, form.parts > 1 and sizes.producer, sizes.slices > 1
    return [
        *form.tile,
        form.consumers,
        int(form.pingpong),
        *form.cluster,
        form.parts,
        int(sizes.persistent),
        sizes.staged + sizes.plain,
        sizes.stages,
        *(map(int, flags) if any(flags) else ()),
        round(us, 2),
    ]


def compiled(text: str) -> bool:
    """Fills the cache of cubins; False for a schedule that is refused."""
    from gemmgen.base.errors import GemmgenError
    from gemmgen.base.source import Source
    from gemmgen.gpu import store
    from gemmgen.pipeline import compile_source

    try:
        store.stored(compile_source(Source(text)).text, "sm_90a")
    except GemmgenError:
        return False
    return True


def timed(
    request: Request, order: str, plans: list[WarpgroupPlan], rounds: int, draw: random.Random
) -> dict[str, Any] | None:
    """A shape of the data."""
    import gemmgen.torch

    m, n, k = request.shape
    dtype = request.dtype["a"]
    a = drawn((m, k) if order in ("TN", "NN") else (k, m), dtype)
    b = drawn((n, k) if order in ("TN", "TT") else (k, n), dtype)
    left = a if order in ("TN", "NN") else a.t()
    right = b.t() if order in ("TN", "TT") else b
    wanted = left.float() @ right.float()
    guess = 2 * m * n * k / 6e8 + 2
    call = vendor_call(left, right, dtype)  # it holds tensors that its graph reads
    try:
        torchs = graph(call, guess)
    except RuntimeError as refusal:
        print(f"{request.shape}: PyTorch: {str(refusal).splitlines()[0]}", flush=True)
        return None
    calls: list[tuple[WarpgroupPlan, Any]] = []
    for plan in plans:
        op = gemmgen.torch.op(plan.text, name=f"bench::warpgroups_{next(_NUMBERS)}")
        error = float((op(a, b).float() - wanted).norm() / wanted.norm())
        if error > most_error(dtype):
            print(f"WRONG: {error:.1e}\n{plan.text}", flush=True)
            continue
        calls.append((plan, graph(lambda op=op: op(a, b), guess)))
    vendor: list[float] = []
    us: dict[str, list[float]] = {plan.text: [] for plan, _ in calls}
    for _ in range(rounds):
        for at, (plan, (made, count)) in enumerate(draw.sample(calls, len(calls))):
            if at % PIECE == 0:
                vendor.append(microseconds(*torchs))
            us[plan.text].append(microseconds(made, count))
        vendor.append(microseconds(*torchs))
    if not calls:
        return None
    rows = [row(plan, median(us[plan.text])) for plan, _ in calls]
    gemm = f"C[m, n] = {ORDERS[order]}"
    return {"gemm": gemm, "shape": [m, n, k], "torch": round(median(vendor), 2), "plans": rows}


def shapes(
    asked: argparse.Namespace, draw: random.Random
) -> Iterator[tuple[tuple[int, int, int], str]]:
    """Extents with a storage order."""
    if asked.named or asked.few_rows:
        yield from ((shape, "TN") for shape in (NAMED if asked.named else FEW_ROWS))
        return
    if asked.slow:
        rows = json.loads(asked.slow.read_text(encoding="utf-8"))["rows"]
        slow = sorted((row for row in rows if row["share"] < SLOW), key=lambda row: row["share"])
        yield from ((tuple(row["shape"]), row["order"]) for row in slow)
    orders, step = (list(ORDERS), 8) if asked.dtype in ("bf16", "f16") else (["TN"], 16)
    for _ in range(asked.count if asked.rows else 0):
        m = int(2 ** draw.uniform(math.log2(step), math.log2(asked.rows))) // step * step
        n, k = (int(2 ** draw.uniform(7, 14)) // step * step for _ in range(2))
        yield (m, n, k), draw.choice(orders)
    for _ in range(0 if asked.rows else asked.count):
        m, n, k = (int(2 ** draw.uniform(5, 13)) // step * step for _ in range(3))
        yield (m, n, k), draw.choice(orders)


_NUMBERS = iter(range(1 << 30))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--few-rows", action="store_true")
    parser.add_argument("--slow", type=Path, help="first the slow ones of a run of default_path.py")
    parser.add_argument("--rows", type=int, help="C has up to this many rows, and n, k to 16384")
    parser.add_argument("--dtype", choices=tuple(TYPES), default="bf16")
    parser.add_argument("--plans", type=int, default=22)
    parser.add_argument("--first", type=int, default=8)
    parser.add_argument("--within", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=inf)
    parser.add_argument("--jobs", type=int, help="processes that compile")
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    begin, draw = time.monotonic(), random.Random(asked.seed)
    cases: list[tuple[Request, str, list[tuple[WarpgroupPlan, Future[bool]]]]] = []
    found: list[dict[str, Any]] = []
    context = multiprocessing.get_context("spawn")
    jobs = asked.jobs or max(1, (os.cpu_count() or 2) - 2)
    with ProcessPoolExecutor(jobs, context) as pool:
        for shape, order in shapes(asked, draw):
            request = Request.of(f"C[m, n] = {ORDERS[order]}", shape, dtype=TYPES[asked.dtype])
            plans = chosen(request, asked, draw)
            cases.append((request, order, [(x, pool.submit(compiled, x.text)) for x in plans]))
        for request, order, plans in cases:
            if time.monotonic() - begin > asked.seconds:
                for _, future in plans:
                    future.cancel()
                continue
            legal = [plan for plan, future in plans if future.result()]
            case = timed(request, order, legal, asked.rounds, draw)
            if case is not None:
                found.append(case)
                best = min(x[-1] for x in case["plans"])
                print(f"{case['shape']} {order} {case['torch'] / best:.3f}", flush=True)
                asked.json.write_text(written(found, TYPES[asked.dtype]), encoding="utf-8")
    print(f"{len(found)} shapes in {time.monotonic() - begin:.0f} s")


def written(found: list[dict[str, Any]], dtype: str) -> str:
    """The file's text, with a line for each shape."""
    from gemmgen.explore.results.measured_result import MachineInfo

    here = MachineInfo.here(0)
    about = {
        "gpu": here.gpu,
        "driver": here.driver,
        "cuda": here.cuda,
        "date": datetime.now(UTC).date().isoformat(),
        "dtype": dtype,
        "code": CODE,
        "plans": PLANS,
    }
    head = json.dumps(about)[:-1]
    rows = ",\n".join("  " + json.dumps(x, separators=(",", ":")) for x in found)
    return f'{head},\n "shapes": [\n{rows}\n ]}}\n'


if __name__ == "__main__":
    main()
