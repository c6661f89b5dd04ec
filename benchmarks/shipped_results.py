"""Writes the table of results that ships with gemmgen, from measurements under ``docs/data``.

    python benchmarks/shipped_results.py [--keep 2] [--within 1.03] [--share 0.7]

Of each shape the fastest schedule is kept, and the next ones whose time is ``--within`` a factor of
it, ``--keep`` in all.  A shape without one that reaches ``--share`` of the vendor's speed is left
to the cost model, since none of its good schedules was timed.  The measurements must be of kernels
as this version emits them: run it after measuring, and never to refresh hashes of older
measurements.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from warpgroup_fit import DATA, timed_sizes

from gemmgen import __version__
from gemmgen.base.source import Source
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.results.code_hash import code_hash
from gemmgen.explore.results.measured_result import ProblemKey
from gemmgen.explore.results.shipped_table import FILE
from gemmgen.explore.suggest.request import Request
from gemmgen.explore.suggest.warpgroup_plans import WarpgroupForm, WarpgroupPlan
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule

ARCH = "sm_90"


def text_of(request: Request, row: list[Any]) -> str:
    """The canonical text of a row of the measurements."""
    sizes = timed_sizes(request, row[:-1])
    m, n, k, consumers, pingpong, along_m, along_n, parts, *_ = row
    form = WarpgroupForm((m, n, k), consumers, bool(pingpong), (along_m, along_n), parts)
    schedule = compile_source(Source(WarpgroupPlan(form, request, sizes).text)).schedule
    return format_schedule(canonical(schedule))


def groups(path: Path, keep: int, within: float, share: float) -> list[dict[str, Any]]:
    """An object for each problem, as ``shipped_table`` says."""
    data, found = json.loads(path.read_text(encoding="utf-8")), dict[str, dict[str, Any]]()
    timed: dict[Request, list[tuple[float, float, list[Any]]]] = {}
    for case in data["shapes"]:
        request = Request.of(case["gemm"], tuple(case["shape"]), dtype=data["dtype"])
        rows = timed.setdefault(request, [])
        rows += ((row[-1], case["torch"], row) for row in case["plans"])
    for request, rows in timed.items():
        problem = ProblemKey.of_request(request).text
        group = found.setdefault(problem, _group(problem, data))
        kept: dict[str, tuple[float, float]] = {}
        least, theirs, _ = min(rows)
        for us, vendor, row in sorted(rows) if theirs >= share * least else ():
            if len(kept) < keep and us <= within * least:
                kept.setdefault(text_of(request, row), (us, vendor))
        texts = [known for known, _ in group["schedules"]]
        for text, (us, vendor) in kept.items():
            if text not in texts:
                group["schedules"].append([text, code_hash(compile_source(Source(text)).text)])
                texts.append(text)
            sizes = "x".join(map(str, request.shape))
            group["rows"].append([sizes, texts.index(text), _seconds(us), _seconds(vendor)])
    return list(found.values())


def _group(problem: str, data: dict[str, Any]) -> dict[str, Any]:
    about = {key: data[key] for key in ("gpu", "driver", "cuda", "date")}
    return {
        "problem": problem,
        **about,
        "arch": ARCH,
        "version": __version__,
        "schedules": list[list[str]](),
        "rows": list[list[Any]](),
    }


def _seconds(us: float) -> float:
    return float(f"{us * 1e-6:.6g}")


def written(found: list[dict[str, Any]]) -> str:
    """JSON with a line for each schedule and each row."""
    parts: list[str] = []
    for group in found:
        lines = [f' "{key}": {json.dumps(group[key])}' for key in group if key not in LISTS]
        for key in LISTS:
            rows = ",\n".join(f"  {json.dumps(row)}" for row in group[key])
            lines.append(f' "{key}": [\n{rows}\n ]')
        parts.append("{\n" + ",\n".join(lines) + "\n}")
    return "[" + ",\n".join(parts) + "]\n"


LISTS = ("schedules", "rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=int, default=2)
    parser.add_argument("--within", type=float, default=1.03)
    parser.add_argument("--share", type=float, default=0.7)
    asked = parser.parse_args()
    text = written(groups(DATA, asked.keep, asked.within, asked.share))
    FILE.write_text(text, encoding="utf-8")
    print(f"{FILE}: {len(text)} bytes")


if __name__ == "__main__":
    main()
