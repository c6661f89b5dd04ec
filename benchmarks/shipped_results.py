"""Writes the table of results that ships with gemmgen, from measurements under ``docs/data``.

    python benchmarks/shipped_results.py [--keep 2] [--within 1.03] [--share 0.7]

Of each shape the fastest schedule is kept, and the next ones whose time is ``--within`` a factor of
it, ``--keep`` in all; runs are compared by the share of the vendor's time.  A shape without one
that reaches ``--share`` of the vendor's speed is left to the cost model, since none of its good
schedules was timed.  The measurements must be of kernels as this version emits them: run it after
measuring, and never to refresh hashes of older measurements.  (They were refreshed where names in
225 texts changed and their PTX did not, but for names of constants; and where the layout of all
258 texts changed, and NVRTC 13.0 gave the same PTX for each.)  Where machine code changed,
``retimed.json`` has the new kernels' times over the old ones', interleaved on an NVIDIA H200 with
equal outputs; times of measurements without ``"code": 2`` are multiplied with these.

``named_*.json`` has, of the shapes that ``default_path.py`` names, those whose schedules were below
.97 of PyTorch in its first run, and 512, and its shapes of few rows, but for one, where lanes that
split K are faster; ``tuned.json`` has winners of ``gemmgen tune``, and
``tuned_h100.json`` the fastest of ``named_shapes.py`` on an NVIDIA H100.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from warpgroup_fit import DATA, timed_sizes

from gemmgen import __version__
from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.results.code_hash import DIGITS, code_hash
from gemmgen.explore.results.measured_result import ProblemKey, terms_of
from gemmgen.explore.results.shipped_table import FILE
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupForm, WarpgroupPlan
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.roles import extents

RETIMED = "retimed.json"
CODE = 2
"""The version of the emitted code that is timed now, as files of measurements state it."""
FOLDER, EXAMPLES = DATA.parent, DATA.parents[2] / "examples"
ARCH = "sm_90"
SCHEDULES = "schedules"
ROWS = "rows"


@dataclass(frozen=True)
class Timed:
    """One measurement: ``about`` is the GPU, driver, CUDA and date."""

    problem: ProblemKey
    schedule: str
    us: float
    vendor: float
    about: tuple[str, str, str, str]

    @property
    def ratio(self) -> float:
        return self.us / self.vendor


def timed(text: str, shape: Iterable[int], us: float, vendor: float, about: Any) -> Timed:
    """``about`` has the keys ``gpu``, ``driver``, ``cuda`` and ``date``."""
    schedule, own = read(text)
    if about.get("code", 1) < CODE:
        us *= retimed().get(name_of(own), 1.0)
    keys = tuple(about[key] for key in ("gpu", "driver", "cuda", "date"))
    key = ProblemKey.of(schedule, tuple(shape))
    return Timed(key, own, us, vendor, keys)


@cache
def retimed() -> dict[str, float]:
    """New times over old ones, by ``name_of`` the schedules."""
    found: dict[str, float] = json.loads((FOLDER / RETIMED).read_text(encoding="utf-8"))["ratios"]
    return found


def name_of(own: str) -> str:
    """A short name of a canonical schedule."""
    return hashlib.sha256(own.encode()).hexdigest()[:DIGITS]


@cache
def read(text: str) -> tuple[Schedule, str]:
    """A schedule, and its canonical text; half of the schedules were timed more than once."""
    schedule = parse_schedule(Source(text))
    return schedule, format_schedule(canonical(schedule))


def warpgroups(path: Path) -> Iterator[Timed]:
    """Plans of many shapes, against PyTorch, as ``warpgroup_data.py`` writes them."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for case in data["shapes"]:
        request = Request.of(case["gemm"], tuple(case["shape"]), dtype=data["dtype"])
        for row in case["plans"]:
            m, n, k, consumers, pingpong, along_m, along_n, parts, *_, us = row
            sizes, cluster = timed_sizes(request, row[:-1]), (along_m, along_n)
            tile, alternate = (m, n, k), bool(pingpong)
            form = WarpgroupForm(tile, consumers, alternate, cluster, parts, sizes.swapped)
            plan = WarpgroupPlan(form, request, sizes)
            yield timed(plan.text, request.shape, us, case["torch"], data)


def tensor_cores(path: Path) -> Iterator[Timed]:
    """The schedules that ``tensor_cores.py`` timed, against the best of cuBLAS and cublasLt."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        if row["text"] and row["checked"] and row["of_best"] is not None:
            us = row["ms"] * 1e3
            yield timed(row["text"], row["shape"], us, us * row["of_best"], row)


def tuned(path: Path) -> Iterator[Timed]:
    """Schedules that were timed together, against the best of cuBLAS and cublasLt."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for case in data["cases"]:
        for text, us in case["schedules"]:
            yield timed(text, case["shape"], us, case["vendor"], data)


def cublas(path: Path = FOLDER / "cublas.json") -> Iterator[Timed]:
    """The schedules of f32 of ``examples/best``, against cuBLAS."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        file = EXAMPLES / "best" / f"{row['schedule']}.sched"
        text = file.read_text(encoding="utf-8")
        sizes = dict(part.split("=") for part in row["shape"].split())
        shape = [int(sizes[x]) for x in extents(parse_schedule(Source(text)).gemm).values()]
        if row["checked"]:
            us = row["ms"] * 1e3
            yield timed(text, shape, us, us * row["share"], row)


def kept(found: Iterable[Timed], keep: int, within: float, share: float) -> list[Timed]:
    """The fastest ones of each problem, shape and GPU, in a fixed order; f32 as products of bf16
    terms is another problem than f32."""
    by_problem: dict[tuple[ProblemKey, str, bool], dict[str, Timed]] = {}
    for one in sorted(found, key=lambda x: (x.ratio, x.schedule)):
        key = one.problem, one.about[0], terms_of(read(one.schedule)[0])
        by_problem.setdefault(key, {}).setdefault(one.schedule, one)
    chosen: list[Timed] = []
    for each in by_problem.values():
        least = min(one.ratio for one in each.values())
        if least * share <= 1:
            chosen += [one for one in each.values() if one.ratio <= within * least][:keep]
    return sorted(chosen, key=lambda x: (x.about, x.problem.text, x.problem.shape, x.us))


def groups(found: Iterable[Timed]) -> list[dict[str, Any]]:
    """An object for each problem and run, as ``shipped_table`` says."""
    made: dict[object, dict[str, Any]] = {}
    for one in found:
        group = made.setdefault((one.about, one.problem.text), _group(one))
        texts = [known for known, _ in group[SCHEDULES]]
        if one.schedule not in texts:
            emitted = compile_source(Source(one.schedule))
            group[SCHEDULES].append([one.schedule, code_hash(emitted.text)])
            texts.append(one.schedule)
        sizes = "x".join(map(str, one.problem.shape))
        times = _seconds(one.us), _seconds(one.vendor)
        group[ROWS].append([sizes, texts.index(one.schedule), *times])
    return list(made.values())


def _group(one: Timed) -> dict[str, Any]:
    gpu, driver, cuda, date = one.about
    about = {"gpu": gpu, "arch": ARCH, "driver": driver, "cuda": cuda, "date": date}
    lists = {SCHEDULES: list[list[str]](), ROWS: list[list[Any]]()}
    return {"problem": one.problem.text, **about, "version": __version__, **lists}


def _seconds(us: float) -> float:
    return float(f"{us * 1e-6:.6g}")


def written(found: Iterable[dict[str, Any]]) -> str:
    """JSON with a line for each schedule and each row."""
    parts: list[str] = []
    for group in found:
        lines: list[str] = []
        for key, value in group.items():
            if key in (SCHEDULES, ROWS):
                rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
                lines.append(f' "{key}": [\n{rows}\n ]')
            else:
                lines.append(f' "{key}": {json.dumps(value)}')
        parts.append("{\n" + ",\n".join(lines) + "\n}")
    return "[" + ",\n".join(parts) + "]\n"


def all_of_them(keep: int = 2, within: float = 1.03, share: float = 0.7) -> list[dict[str, Any]]:
    """The table."""
    plans = (DATA, *sorted(FOLDER.glob("named_*.json")))
    found = [one for path in plans for one in warpgroups(path)]
    found += [
        one for path in sorted(FOLDER.glob("tensor_cores*.json")) for one in tensor_cores(path)
    ]
    found += [one for path in sorted(FOLDER.glob("tuned*.json")) for one in tuned(path)]
    return groups(kept([*found, *cublas()], keep, within, share))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=int, default=2)
    parser.add_argument("--within", type=float, default=1.03)
    parser.add_argument("--share", type=float, default=0.7)
    asked = parser.parse_args()
    text = written(all_of_them(asked.keep, asked.within, asked.share))
    FILE.write_text(text, encoding="utf-8")
    print(f"{FILE}: {len(text)} bytes")


if __name__ == "__main__":
    main()
