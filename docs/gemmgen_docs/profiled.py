"""The counters of a profiler (ncu), and the rows of ``gemmgen explain`` that say the same."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemmgen_docs import commands
from gemmgen_docs.markdown import code, fence, table

COUNTERS = Path(__file__).parents[2] / "tests" / "analyze" / "counters.json"
VERSIONS = ("v1", "v2", "v3", "v4", "v5", "v6_corrected")

COMPARED = {
    "global read sectors": ("global memory", "sectors of the reads"),
    "global write sectors": ("global memory", "sectors of the writes"),
    "global read requests": ("global memory", "requests of the reads"),
    "global write requests": ("global memory", "requests of the writes"),
    "shared read wavefronts": ("shared memory", "wavefronts of the reads, as compiled"),
    "shared write wavefronts": ("shared memory", "wavefronts of the writes"),
    "shared read requests": ("shared memory", "requests of the reads, as compiled"),
    "shared write requests": ("shared memory", "requests of the writes"),
}
"""The counters that the tests compare: the section of ``explain``, and the column."""

OTHERS = {
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("work", "operations, by two"),
    "launch__registers_per_thread": ("resources", "registers"),
    "launch__shared_mem_per_block_static": ("resources", "shared memory"),
    "sm__maximum_warps_per_active_cycle_pct": ("resources", "occupancy"),
    "launch__waves_per_multiprocessor": ("resources", "waves"),
    "smsp__issue_active.avg.pct_of_peak_sustained_active": ("roofline", "issue slots"),
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": (
        "roofline",
        "shared memory and L1",
    ),
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": ("roofline", "L2"),
    "dram__bytes_read.sum": ("roofline", "device memory"),
}
"""Others that answer the same question as a row of ``explain``."""


@functools.cache
def measured() -> Mapping[str, Any]:
    """What ncu counted: the GPU, the shape, the counters' names, and each kernel's."""
    return json.loads(COUNTERS.read_text(encoding="utf-8"))


def about() -> str:
    """The GPU, the tool and the date of the counts."""
    found = measured()
    return f"{found['gpu']}, {found['tool']}, {found['date']}"


def shape() -> str:
    """The shape that was counted."""
    return "x".join(map(str, measured()["shape"]))


def metrics() -> str:
    """Each counter beside the row of ``explain``."""
    names: Mapping[str, str] = measured()["metrics"]
    assert names.keys() == COMPARED.keys(), "a counter has no row of explain"
    rows = [(code(names[key]), *place, "yes") for key, place in COMPARED.items()]
    rows += [(code(name), *place, "") for name, place in OTHERS.items()]
    return table(("counter of ncu", "section of explain", "there", "compared by the tests"), rows)


def command(name: str) -> str:
    """The command that counts them, for one example."""
    listed = ",".join(measured()["metrics"].values()).replace(",", ",\\\n")
    return fence(
        f"ncu --csv --clock-control none --kernel-name gemm --metrics \\\n{listed} \\\n"
        f"python tests/gpu/launching.py {name} --shape={shape()}",
        "sh",
    )


def versions() -> str:
    """The six versions under ncu, beside what ``explain`` counts."""
    keys = [key for key in COMPARED if "requests" not in key]
    keys.insert(2, "shared read requests")
    rows = [
        (f"[{name}](ladder/versions.md)", *(_pair(f"versions/{name}", key) for key in keys))
        for name in VERSIONS
    ]
    return table(("", *keys), rows, right=range(1, len(keys) + 1))


def _pair(name: str, key: str) -> str:
    """ncu's count, and that of ``explain`` where it is another."""
    theirs, ours = measured()["kernels"][name][key], explained(name)[key]
    more = "" if ours == theirs else f"<br>({ours:,})"
    return f"{theirs:,}{more}"


@functools.cache
def explained(name: str) -> Mapping[str, int]:
    """The same figures by ``gemmgen explain``."""
    line = f"gemmgen explain examples/{name}.sched --shape {shape()} --json"
    ran = commands.run(line)
    assert ran.exit_code == 0, ran.err
    report = json.loads(ran.out)
    found = dict.fromkeys(COMPARED, 0)
    for row in compiled(report["traffic"], report["joined_reads"]):
        shared = row["phases"] > 0
        way = f"{'shared' if shared else 'global'} {'write' if row['write'] else 'read'}"
        found[f"{way} requests"] += row["requests"]
        found[f"{way} {'wavefronts' if shared else 'sectors'}"] += row[
            "clocks" if shared else "sectors"
        ]
    return found


def compiled(
    traffic: Sequence[Mapping[str, Any]], joined: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The accesses as the compiler makes them: reads that it joins are in place of those as
    written."""
    instead = {(row["buffer"], row["write"]) for row in joined}
    return [row for row in traffic if (row["buffer"], row["write"]) not in instead] + [*joined]
