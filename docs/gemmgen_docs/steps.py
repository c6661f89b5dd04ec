"""The steps from ``mma/ahead`` to the fastest bf16 schedule: what each changes, and its times."""

from __future__ import annotations

import functools
import json
from itertools import pairwise

from gemmgen_docs import measured, schedules
from gemmgen_docs.markdown import difference, fence, folded, table

FILE = measured.DATA / "steps.json"
STEPS = (
    "mma/ahead",
    "steps/mma_tma",
    "mma/producer",
    "steps/wgmma_plain",
    "steps/wgmma_persistent",
    "hopper/wgmma",
    "steps/wgmma_tma_store",
    "best/bf16_8192",
)
BEFORE = {after: before for before, after in pairwise(STEPS)}
SIZES = (2048, 4096, 8192)
_WHOLE = 100


@functools.cache
def rows() -> dict[tuple[str, int], measured.Row]:
    """The measurements by the name in the file, which is a stem, and M = N = K."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return {(row["name"], row["shape"]["M"]): row for row in found}


def row(name: str, size: int) -> measured.Row:
    """The measurement of a step."""
    return rows()[name.rpartition("/")[2], size]


def steps_table() -> str:
    """Each step with its speed, and its share of the best of cuBLAS and cublasLt."""
    header = ["step", *(f"TFLOP/s, {size}³" for size in SIZES)]
    header += [f"of the best, {size}³" for size in SIZES]
    lines = [
        [
            f"[`{name}`](#{anchor(name)})",
            *(f"{row(name, size)['tflops']:.0f}" for size in SIZES),
            *(f"{row(name, size)['of_best']:.0%}" for size in SIZES),
        ]
        for name in STEPS
    ]
    note = measured.on(list(rows().values()))
    return (
        table(header, lines, right=range(1, len(header)))
        + f"\nMeasured on an {note}, bf16, `C[m, n] = A[m, k] * B[n, k]`, medians of one "
        "interleaved run, results checked. The best is the faster of cuBLAS and cublasLt.\n"
    )


def anchor(name: str) -> str:
    """The anchor of a step's section."""
    return name.rpartition("/")[2]


def taken(name: str) -> str:
    """A step: the schedule's change, the kernel's, and the measured gain."""
    before = BEFORE.get(name)
    if before is None:
        return schedules.schedule(name)
    old, new = (schedules.text(one) for one in (before, name))
    lines = ["\n".join(schedules.statements(text)) for text in (old, new)]
    changed = difference(*lines, _WHOLE)
    kernels = difference(schedules.kernel(old), schedules.kernel(new), 2)
    count = sum(line.startswith(("+", "-")) for line in kernels.splitlines())
    title = f"What changes in the CUDA C, from {before}: {count} lines"
    return "\n".join([changed, folded(title, kernels), gain(name, before)])


def gain(name: str, before: str) -> str:
    """How many times as fast as the step before it is."""
    times = [row(before, size)["ms"] / row(name, size)["ms"] for size in SIZES]
    said = ", ".join(f"**{t:.2f}** at {size}" for t, size in zip(times, SIZES, strict=True))
    return f"Speed over `{before}`: {said}.\n"


def command() -> str:
    """The command that measures them again."""
    files = " ".join(f"examples/{name}.sched" for name in STEPS)
    sizes = " ".join(f"--size {size}" for size in SIZES)
    return fence(f"gemmgen ladder {files} {sizes} --json > docs/data/{FILE.name}", "sh")
