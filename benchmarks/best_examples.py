"""Writes schedules of ``examples/best`` from the table of results that ships with gemmgen.

    python benchmarks/best_examples.py          # writes those that are not the fastest any more
    python benchmarks/best_examples.py --check  # names them; exit code 1 if there are any

Each file has the fastest schedule that the table has for a problem at a shape.  A file is kept
while its own schedule is within ``WITHIN`` of the fastest, since runs differ by that much.  Files
that are not in ``BEST`` show what the table's winners don't: WMMA, and f32 with TMA.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.explore.results.canonical_names import CanonicalNames, canonical, renamed
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey, terms_of
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.results.shipped_table import shipped
from gemmgen.gpu.gpus import GPUS
from gemmgen.ir.launch_shape import Shape
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

FOLDER = Path(__file__).parents[1] / "examples" / "best"
WITHIN = 1.02
"""The longest time of a file that is kept, as a multiple of the fastest."""
ORDERS = {
    "mk_kn": "A[m, k] * B[k, n]",
    "mk_nk": "A[m, k] * B[n, k]",
    "km_kn": "A[k, m] * B[k, n]",
    "km_nk": "A[k, m] * B[n, k]",
}
SQUARES = {"small": 512, "medium": 1024, "large": 4096, "odd": 4097}
BF16 = "gemm C[m, n] = A[m, k] * B[n, k]\ndtype A=bf16 B=bf16 C=bf16\n"
OTHERS: dict[str, tuple[str, Shape]] = {
    "batched": ("gemm C[b, m, n] = A[b, m, k] * B[b, k, n]\n", (256, 256, 256, 64)),
    "vector": ("gemm C[m, n] = A[m, k] * B[k, n]\n", (1, 4096, 4096)),
    "deep": ("gemm C[m, n] = A[m, k] * B[k, n]\n", (64, 64, 65536)),
    "bias_relu": (
        "gemm C[m, n] = A[m, k] * B[k, n]\nfuse_epilogue relu(acc + bias[n])\n",
        (4096, 4096, 1024),
    ),
    "bf16_1024": (BF16, (1024, 1024, 1024)),
    "bf16_4096": (BF16, (4096, 4096, 4096)),
    "bf16_8192": (BF16, (8192, 8192, 8192)),
    "bf16_128_rows": (BF16, (128, 7168, 16384)),
    "bf16_768_columns": (BF16, (2048, 768, 3072)),
    "bf16_2304_columns": (BF16, (2048, 2304, 768)),
}


@dataclass(frozen=True)
class Best:
    """A file of ``examples/best``: the problem that it solves, and the shape (M, N, K, batches) at
    which it is the fastest."""

    stem: str
    problem: Schedule
    shape: Shape

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.stem}.sched"

    def results(self) -> tuple[MeasuredResult, ...]:
        """What the shipped table has for it, fastest first, but for f32 as products of bf16
        terms."""
        key = ProblemKey.of(self.problem, self.shape)
        found = Results(None, shipped()).exact(key, GPUS["H200"].name)
        return tuple(x for x in found if not terms_of(parse_schedule(Source(x.schedule))))

    def own(self) -> MeasuredResult | None:
        """The result of the file's schedule."""
        text = format_schedule(canonical(parse_schedule(Source(self.path.read_text("utf-8")))))
        return next((x for x in self.results() if x.schedule == text), None)

    def overtaken_by(self) -> MeasuredResult | None:
        """The fastest result, if the file's schedule is not within ``WITHIN`` of it."""
        fastest, own = self.results()[0], self.own()
        if own is not None and _ratio(own) <= WITHIN * _ratio(fastest):
            return None
        return fastest

    def text(self, result: MeasuredResult) -> str:
        """The file with a result's schedule, in the problem's names; its first line says where it
        was measured."""
        names = CanonicalNames.of(self.problem).reversed()
        found = renamed(parse_schedule(Source(result.schedule)), names)
        sizes = " x ".join(map(str, self.shape[:3]))
        count = f", {self.shape[3]} matrices" if len(self.shape) > 3 else ""
        of = (
            f": {result.vendor / result.seconds:.0%} of the vendor's speed" if result.vendor else ""
        )
        about = f"# {sizes}{count}{of} on an {result.machine.gpu}, {result.date}.\n"
        return about + shortened(replace(found, kernel=self.problem.kernel))


def shortened(schedule: Schedule) -> str:
    """A schedule's text, without the indices of staged tensors where they are as by default."""
    lines = format_schedule(schedule).splitlines()
    for at, line in enumerate(lines):
        if line.startswith("cache_shared"):
            bare = line[:16] + " ".join(part.split("[")[0] for part in line[16:].split("] "))
            text = "\n".join([*lines[:at], bare, *lines[at + 1 :], ""])
            try:
                if format_schedule(parse_schedule(Source(text))) == format_schedule(schedule):
                    lines[at] = bare
            except ScheduleError:
                pass
    return "\n".join([*lines, ""])


def _ratio(result: MeasuredResult) -> float:
    return result.seconds / (result.vendor or 1)


def best() -> Iterator[Best]:
    """All files that the table decides."""
    for name, size in SQUARES.items():
        for order, product in ORDERS.items():
            problem = parse_schedule(Source(f"gemm C[m, n] = {product}\n"))
            yield Best(f"{name}_{order}", problem, (size, size, size))
    for stem, (text, shape) in OTHERS.items():
        yield Best(stem, parse_schedule(Source(text)), shape)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args()
    found = 0
    for one in best():
        result = one.overtaken_by()
        if result is None:
            continue
        found += 1
        own = one.own()
        share = f"{_ratio(own) / _ratio(result):.3f} times its time" if own else "not in the table"
        print(f"{one.path}: the fastest is another schedule; this one is {share}")
        if not asked.check:
            one.path.write_text(one.text(result), encoding="utf-8")
    return 1 if found and asked.check else 0


if __name__ == "__main__":
    sys.exit(main())
