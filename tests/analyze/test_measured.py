"""No bound that ``explain`` gives is below what was measured, with a compiler or without one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import compilers
import pytest

from gemmgen.analyze.explain import Explanation, explain, roofline_at
from gemmgen.base.source import Source
from gemmgen.cli.ladder_counts import Counted, cells, title
from gemmgen.cli.ladder_rungs import Rung, built_in
from gemmgen.explore.results.shipped_table import shipped
from gemmgen.gpu import compiler
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.schedule.roles import extents

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs/data"
H200 = GPUS["H200"]
FILES = {path.stem: path for path in sorted((ROOT / "examples").rglob("*.sched"))}
QUICK = {("register_blocked", (4096,) * 3), ("vectorized", (4096,) * 3)}


@cache
def rungs() -> dict[str, Rung]:
    return {rung.name: rung for rung in built_in()}


@dataclass(frozen=True)
class Measured:
    """A schedule's stem, its extents by name, the GPU, and TFLOP/s."""

    name: str
    shape: tuple[tuple[str, int], ...]
    gpu: str
    tflops: float

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.shape)


def measured() -> Iterator[Measured]:
    """All published measurements: the data of the documentation, and the ladder's table."""
    for path in sorted(DATA.glob("ladder.json")) + sorted(DATA.glob("beyond*.json")):
        for row in json.loads(path.read_text()):
            if not row["name"].startswith("cuBLAS") and row.get("ms"):
                name = Path(row["name"]).stem
                yield Measured(name, tuple(row["shape"].items()), row["gpu"], row["tflops"])
    for row in json.loads((DATA / "cublas.json").read_text()):
        shape = tuple((name, int(size)) for name, size in re.findall(r"(\w+)=(\d+)", row["shape"]))
        speed = 2 * prod(size for _, size in shape) / row["ms"] / 1e9
        yield Measured(row["schedule"], shape, row["gpu"], speed)
    text = (ROOT / "docs/performance.md").read_text()
    table = text[text.index("<!-- ladder -->") : text.index("<!-- /ladder -->")]
    gpu = re.search(r" on an (NVIDIA [^,(]+)", table)
    heading, _, *lines = (line.split(" | ") for line in table.splitlines() if line[:1] == "|")
    assert gpu is not None and heading[4] == "ms, 4096" and heading[5] == "TFLOP/s"
    for line in lines:
        if (name := line[0].strip("| ")) != "cuBLAS":
            shape = tuple((letter, 4096) for letter in "MNK")
            yield Measured(name, shape, gpu[1].strip(), float(line[5]))


def cases() -> list[object]:
    """Each of them; of several measurements of the same launch the fastest.  Of a kernel at several
    shapes those where it is fastest, which is nearest to a bound, and where it is smallest."""
    found: dict[tuple[object, ...], Measured] = {}
    for each in measured():
        key = each.name, each.shape, each.gpu
        found[key] = max(each, found.get(key, each), key=lambda one: one.tflops)
    kernels: dict[tuple[str, str], list[Measured]] = {}
    for each in found.values():
        kernels.setdefault((each.name, each.gpu), []).append(each)
    ends = {
        id(end)
        for of_one in kernels.values()
        for end in (max(of_one, key=lambda one: one.tflops), min(of_one, key=lambda one: one.sizes))
    }
    proof = pytest.mark.proof
    return [
        pytest.param(
            one,
            marks=() if (one.name, one.sizes) in QUICK else proof,
            id=f"{one.name}-{'x'.join(map(str, one.sizes))}",
        )
        for one in found.values()
        if id(one) in ends or (one.name, one.sizes) in QUICK
    ]


def explained(one: Measured) -> Explanation:
    gpu = gpu_named(one.gpu)
    path = FILES[one.name]
    schedule = parse_schedule(Source(path.read_text(encoding="utf-8"), path.name))
    sizes = dict(one.shape)
    return explain(schedule, tuple(sizes[x] for x in extents(schedule.gemm).values()), gpu)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("has_compiler", [True, False])
@pytest.mark.parametrize("one", cases())
def test_no_bound_is_below_the_measurement(
    one: Measured, has_compiler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_compiler:
        compilers.needed()
        found = explained(one)
    else:
        with compilers.none_at_all(monkeypatch):
            found = explained(one)
    assert found.resources.estimated is not has_compiler
    lowest = min(
        found.attainable, *(found.roofline.flops / b.seconds for b in found.roofline.bounds)
    )
    assert lowest >= one.tflops * 1e12


def test_every_rung_was_measured() -> None:
    assert {one.name for one in measured()} >= rungs().keys()


def test_an_estimate_is_marked_and_keeps_launch_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with compilers.none_at_all(monkeypatch):
        found = explain(rungs()["vectorized"].kernel.schedule, (4096, 4096, 4096), H200)
        why = str(compiler.available())
    assert "__launch_bounds__(THREADS, 2)" in found.kernel.emitted.text
    assert found.occupancy.blocks == 2 and found.resources.registers <= 128
    counted = (Counted(rungs()["vectorized"], found),)
    line = dict(zip(*cells(counted), strict=True))
    assert line["registers"] == f"~{found.resources.registers}" and line["occupancy"] == "~25%"
    assert line["spills"] == "-" and f"~ is estimated: {why}" in title(4096, H200, counted)


SHIPPED = shipped()
SAMPLE = 80


@pytest.mark.proof
def test_no_bound_is_below_what_ships_as_measured() -> None:
    """Kernels with wgmma, whose tiles TMA loads from L2 faster than threads do."""
    assert SHIPPED is not None
    results = SHIPPED.all()
    every = max(1, len(results) // SAMPLE)
    for one in results[::every]:
        schedule = parse_schedule(Source(one.schedule))
        found = roofline_at(schedule, one.problem.shape, gpu_named(one.machine.gpu))
        seconds = max(bound.seconds for bound in found.bounds)
        assert seconds <= one.seconds, (one.described(), found.binding)
