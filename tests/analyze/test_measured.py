"""No bound that ``explain`` gives is below what was measured, with a compiler or without one."""

from __future__ import annotations

import json
from pathlib import Path

import compilers
import pytest

from gemmgen.analyze import explain as module
from gemmgen.analyze.access_counts import LaunchCounts
from gemmgen.analyze.count import count_compiled
from gemmgen.analyze.explain import Explanation, explain
from gemmgen.cli.ladder_counts import Counted, cells, title
from gemmgen.cli.ladder_rungs import built_in
from gemmgen.gpu import compiler
from gemmgen.gpu.gpus import GPUS
from gemmgen.ir.lowered import LoweredKernel

DATA = Path(__file__).parents[2] / "docs/data/ladder.json"
H200 = GPUS["H200"]
RUNGS = {rung.name: rung for rung in built_in()}
QUICK = (("register_blocked", 4096), ("vectorized", 4096))
known: dict[object, LaunchCounts] = {}


def measured() -> dict[tuple[str, int], float]:
    """TFLOP/s on an NVIDIA H200 by rung and size."""
    rows = json.loads(DATA.read_text())
    return {(r["name"], r["shape"]["M"]): r["tflops"] for r in rows if r["name"] in RUNGS}


def cases() -> list[object]:
    proof = pytest.mark.proof
    return [
        pytest.param(*c, marks=() if c in QUICK else proof, id=f"{c[0]}-{c[1]}") for c in measured()
    ]


@pytest.fixture(autouse=True)
def counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting takes longest and asks no compiler."""

    def counted(kernel: LoweredKernel, values: dict[str, int | float]) -> LaunchCounts:
        key = kernel, tuple(values.items())
        if key not in known:
            known[key] = count_compiled(kernel, values)
        return known[key]

    monkeypatch.setattr(module, "count_compiled", counted)


def explained(name: str, size: int) -> Explanation:
    return explain(RUNGS[name].kernel.schedule, (size, size, size), H200)


@pytest.mark.parametrize("has_compiler", [True, False])
@pytest.mark.parametrize(("name", "size"), cases())
def test_no_bound_is_below_the_measurement(
    name: str, size: int, has_compiler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_compiler:
        compilers.needed()
        found = explained(name, size)
    else:
        with compilers.none_at_all(monkeypatch):
            found = explained(name, size)
    assert found.resources.estimated is not has_compiler
    lowest = min(
        found.attainable, *(found.roofline.flops / b.seconds for b in found.roofline.bounds)
    )
    assert lowest >= measured()[name, size] * 1e12


def test_every_rung_was_measured() -> None:
    assert {name for name, _ in measured()} == RUNGS.keys()


def test_an_estimate_is_marked_and_keeps_launch_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with compilers.none_at_all(monkeypatch):
        found = explained("vectorized", 4096)
        why = str(compiler.available())
    assert "__launch_bounds__(THREADS, 2)" in found.kernel.emitted.text
    assert found.occupancy.blocks == 2 and found.resources.registers <= 128
    counted = (Counted(RUNGS["vectorized"], found),)
    line = dict(zip(*cells(counted), strict=True))
    assert line["registers"] == f"~{found.resources.registers}" and line["occupancy"] == "~25%"
    assert line["spills"] == "-" and f"~ is estimated: {why}" in title(4096, "H200", counted)
