"""Times schedules at the named shapes of ``default_path.py`` on this GPU, for the shipped table.

    python benchmarks/named_shapes.py [--dtype bf16] [--first 6] --json docs/data/tuned_h100.json

The schedules are those that were measured at a shape on this GPU or on one with as many
multiprocessors, and the ``--first`` ones of the cost model.  They are timed beside cuBLAS and
cublasLt's fastest algorithm in one run for each shape, and checked as ``gemmgen bench`` does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from default_path import NAMED

from gemmgen.base.errors import GemmgenError
from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.results.measured_result import MachineInfo, ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest.measured_plans import on_like_gpus, plan_for
from gemmgen.explore.suggest.warpgroup_ranking import fastest
from gemmgen.gpu import device, store
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.gpus import GPUS
from gemmgen.gpu.rivals import is_rival
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.gpu import reference_of

GEMM = "C[m, n] = A[m, k] * B[n, k]"
MEASURED = 3
"""Results of each GPU that are timed."""
ROUNDS, WARMUP, CHECKED_ROWS = 7, 0.2, 64


def schedules(request: Request, first: int) -> tuple[str, ...]:
    """The texts for a request, each once."""
    results = Results.open()
    own = results.exact(ProblemKey.of_request(request), request.gpu.name)
    plans = [plan_for(result, request) for result in own[:MEASURED]]
    plans += [plan for plan, _ in islice(on_like_gpus(request, results), MEASURED)]
    texts = [plan.text for plan in plans if plan is not None]
    return tuple(dict.fromkeys([*texts, *(plan.text for plan in fastest(request, first))]))


def compiled(text: str) -> Emitted | None:
    """The kernel, in the cache for this GPU; None for a schedule that is refused."""
    try:
        emitted = compile_source(Source(text))
        store.stored(emitted.text, device.arch_for(emitted.target, *device.capability(0)))
    except GemmgenError:
        return None
    return emitted


def timed(shape: tuple[int, int, int], kernels: list[tuple[str, Emitted]]) -> dict[str, Any] | None:
    """A case of the file: microseconds of the vendor's fastest call and of each schedule, fastest
    first; None if a result was wrong."""
    entries = [Entry.of(str(at), each, reference_of(each)) for at, (_, each) in enumerate(kernels)]
    extents = dict(zip("MNK", shape, strict=True))
    rows = bench(entries, [extents], warmup=WARMUP, rounds=ROUNDS, checked_rows=CHECKED_ROWS)
    device.cupy().get_default_memory_pool().free_all_blocks()
    vendor = min(row.ms for row in rows if is_rival(row.name) and row.ms is not None)
    own = [row for row in rows if not is_rival(row.name) and row.ms is not None]
    if not all(row.checked for row in own):
        print(f"WRONG: {shape}: {[row.note for row in own if not row.checked]}", flush=True)
        return None
    own.sort(key=lambda row: row.ms or 0.0)
    found = [[kernels[int(row.name)][0], round(1e3 * (row.ms or 0.0), 3)] for row in own]
    print(
        f"{shape}: {vendor / (own[0].ms or 1):.3f} of the vendor, the {own[0].name}th", flush=True
    )
    return {"shape": list(shape), "vendor": round(1e3 * vendor, 3), "schedules": found}


def cases(dtype: str, first: int) -> Iterator[dict[str, Any]]:
    """Those of all named shapes; the kernels of all are compiled first."""
    gpu = next(gpu for gpu in GPUS.values() if gpu.name in MachineInfo.here(0).gpu)
    requests = [Request.of(GEMM, shape, dtype=dtype, gpu=gpu) for shape in NAMED]
    texts = [schedules(request, first) for request in requests]
    with ThreadPoolExecutor() as pool:
        made = [list(pool.map(compiled, each)) for each in texts]
    for shape, names, kernels in zip(NAMED, texts, made, strict=True):
        pairs = zip(names, kernels, strict=True)
        case = timed(shape, [(text, kernel) for text, kernel in pairs if kernel is not None])
        if case is not None:
            yield {"gemm": GEMM, "dtype": dtype, **case}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--first", type=int, default=6, help="of the cost model (%(default)s)")
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    begin, here = time.monotonic(), MachineInfo.here(0)
    today = datetime.now(UTC).date().isoformat()
    about = {"gpu": here.gpu, "driver": here.driver, "cuda": here.cuda, "date": today}
    found: list[dict[str, Any]] = []
    for case in cases(asked.dtype, asked.first):
        found.append(case)
        asked.json.write_text(json.dumps({**about, "cases": found}, indent=1) + "\n", "utf-8")
    print(f"{len(found)} shapes in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
