"""The fastest schedules of ``examples/best`` against cuBLAS, in one run, every result checked.

    python benchmarks/against_cublas.py                 # a table
    python benchmarks/against_cublas.py --json FILE     # and its rows as JSON
    python benchmarks/against_cublas.py --page     # docs/performance.md from that data

The first two need a GPU, CuPy and cuBLAS.  Random normal numbers, a warm L2 cache, medians of
interleaved launches (``gemmgen.gpu.timing``); cuBLAS computes in float32 (pedantic).  Exit code 1
if a result was wrong; a share under its target is shown and is not a failure.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple
from datetime import date
from pathlib import Path

from passes import fused_row
from shares import BEST, DATA, ROOT, Line, about, page_block, read, replaced

from gemmgen.base.source import Source
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    parser.add_argument("--only", metavar="WORD", default="", help="cases whose name has it")
    parser.add_argument(
        "--page",
        action="store_true",
        help=f"measure nothing: the tables of docs/performance.md, from {DATA.name}",
    )
    arguments = parser.parse_args()
    if arguments.page:
        target = ROOT / "docs/performance.md"
        block = page_block(read())
        target.write_text(replaced(target.read_text(encoding="utf-8"), block), encoding="utf-8")
        return 0
    lines: list[Line] = []
    for line in measured(arguments.only):
        print(text(line), flush=True)
        lines.append(line)
    if lines:
        print(about(lines))
    if arguments.json:
        rows = json.dumps([asdict(line) for line in lines], indent=1)
        Path(arguments.json).write_text(rows + "\n", encoding="utf-8")
    return 0 if all(line.checked for line in lines) else 1


def measured(only: str) -> Iterator[Line]:
    """Every case of ``cases.toml``, measured."""
    with (HERE / "cases.toml").open("rb") as file:
        cases = tomllib.load(file)["case"]
    for case in cases:
        if only not in case["what"]:
            continue
        kernels = {name: kernel_of(name) for name in case["schedules"]}
        for shape in case["shapes"]:
            for row in rows_of(kernels, shape, case.get("passes", 0)):
                if row.name in kernels:
                    spelled = " ".join(f"{name}={size}" for name, size in row.shape)
                    ms, share = row.ms or 0.0, row.share or 0.0
                    known = (case["what"], row.name, spelled, ms, share, case["target"])
                    where = (row.gpu, date.today().isoformat(), *astuple(row.setup))
                    yield Line(*known, row.checked, *where)


def kernel_of(name: str) -> Kernel:
    """A schedule of ``examples/best``, compiled for this GPU."""
    path = BEST / f"{name}.sched"
    return Kernel.of(compile_source(Source(path.read_text(encoding="utf-8"), path.name)))


def rows_of(kernels: dict[str, Kernel], shape: dict[str, int], passes: int) -> Iterable[BenchRow]:
    """The kernels at one shape, interleaved with cuBLAS, or with it and ``passes`` more kernels."""
    if passes:
        ((name, kernel),) = kernels.items()
        return (fused_row(name, kernel, shape, passes),)
    return bench([Entry(name, kernel) for name, kernel in kernels.items()], [shape])


def text(line: Line) -> str:
    """A line of the table."""
    verdict = "" if line.share >= line.target else "  below its target"
    checked = "" if line.checked else "  WRONG"
    return (
        f"{line.schedule:16s} {line.shape:24s} {line.ms * 1000:10.1f} us  {line.share:6.3f}"
        f"  (target {line.target:.2f}){verdict}{checked}"
    )


if __name__ == "__main__":
    sys.exit(main())
