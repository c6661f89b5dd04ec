"""The counts, compared with ncu's on a GPU (``counters.json``; ``tests/gpu`` measures it
again)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stated import stated

from gemmgen.analyze.access_counts import LaunchCounts
from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.count import count_compiled
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.load_joining import as_compiled, as_written
from gemmgen.base.source import Source
from gemmgen.cli.ladder_rungs import built_in
from gemmgen.language import parse_schedule

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
MEASURED = json.loads((HERE / "counters.json").read_text())
KERNELS: dict[str, dict[str, int]] = MEASURED["kernels"]
TOLERANCE = 0.02

LEFT_OUT = stated("miscounted")
UNMEASURED = stated("unmeasured")
REPEATED = (
    "tiled",
    "padded",
    "sizes/small",
    "versions/v2",
    "versions/v3",
    "versions/v4",
    "versions/v5",
)
"""Stores to shared memory that wait for reads are counted again: up to a tenth more."""
QUICK = ("naive", "register_blocked", "warp_tiled", "versions/v5")


def cases() -> list[object]:
    names = [name for name in KERNELS if name not in LEFT_OUT]
    return [n if n in QUICK else pytest.param(n, marks=pytest.mark.proof) for n in names]


def figures(launch: LaunchCounts) -> dict[str, int]:
    found = dict.fromkeys(MEASURED["metrics"], 0)
    for site, counts in launch.items():
        way = f"{site.space} {'write' if site.write else 'read'}"
        found[f"{way} requests"] += counts.requests
        if site.space == "shared":
            found[f"{way} wavefronts"] += counts.clocks
        else:
            found[f"{way} sectors"] += counts.sectors
    return found


def expected(name: str, *, asynchronous: bool) -> dict[str, int]:
    """The figures of ncu that mean what ours do.  cp.async's stores to shared memory have counters
    of their own, and its groups are counted as requests; atomics are not writes."""
    skipped = ["global write requests"] if name.endswith(("split_k", "small_mk_nk")) else []
    if asynchronous:
        skipped += ["shared read requests", "shared write requests", "shared write wavefronts"]
    return {key: KERNELS[name][key] for key in MEASURED["metrics"] if key not in skipped}


def counted(name: str) -> tuple[LaunchCounts, bool]:
    kernel = compile_kernel(parse_schedule(Source((EXAMPLES / f"{name}.sched").read_text())))
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, (512, 512, 512))
    return count_compiled(kernel.lowered, values), "gg_copy_async" in kernel.emitted.text


@pytest.mark.by_default("warp_tiled", "naive")
@pytest.mark.parametrize("name", cases())
def test_a_gpu_counts_the_same(name: str) -> None:
    launch, asynchronous = counted(name)
    widths = frozenset(MEASURED["kernels"][name]["read widths"])
    for compiled in (as_compiled(launch, None), as_compiled(launch, widths)):
        ours = figures(compiled)
        for key, theirs in expected(name, asynchronous=asynchronous).items():
            if name in REPEATED and key == "shared write wavefronts":
                assert ours[key] <= theirs <= 1.1 * ours[key]
            else:
                assert ours[key] == pytest.approx(theirs, rel=TOLERANCE), key


def test_each_operand_is_joined_for_itself() -> None:
    """V5 reads B two elements at a time; that the compiler reads A four at a time is its own."""
    launch, _ = counted("versions/v5")
    reads = {
        (site.buffer, site.width): counts.requests
        for site, counts in as_compiled(launch, None).items()
        if site.space == "shared" and not site.write
    }
    assert reads == {("A_shared", 4): 512**3 // 4 // 64, ("B_shared", 2): 512**3 // 2 // 64}
    narrow = {s.width for s in as_written(launch) if s.buffer == "A_shared" and not s.write}
    assert narrow == {1}


def test_without_the_width_in_the_code_reads_are_as_written() -> None:
    launch, _ = counted("register_blocked")
    assert as_compiled(launch, frozenset({1})) == as_written(launch)


def test_every_rung_and_version_was_measured() -> None:
    versions = {f"versions/{path.stem}" for path in (EXAMPLES / "versions").glob("*.sched")}
    rungs = {path.stem for path in EXAMPLES.glob("*.sched")} | {rung.name for rung in built_in()}
    assert UNMEASURED.keys().isdisjoint(KERNELS)
    rungs -= UNMEASURED.keys()
    assert KERNELS.keys() >= rungs | versions - {"versions/v6"}  # v6 was not counted by ncu yet
