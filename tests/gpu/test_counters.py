"""The predictions of explain, compared with the hardware's counters (ncu)."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
NCU = shutil.which("ncu", path="/usr/local/cuda/bin") or shutil.which("ncu")
NAMES = ("uncoalesced", "naive", "tiled", "transposed", "padded", "register_blocked", "vectorized")
SHAPE = "512x512x512"
TOLERANCE = 0.02

METRICS = {
    "global read sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global write sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared read wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared write wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}

needs_ncu = pytest.mark.skipif(NCU is None, reason="ncu is not here")


def predicted(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "gemmgen", "explain", str(EXAMPLES / f"{name}.sched")]
    command += ["--shape", SHAPE, "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    found = dict.fromkeys(METRICS, 0.0)
    for row in report["traffic"]:
        way = "write" if row["write"] else "read"
        shared = row["buffer"].endswith("_shared")
        key = f"shared {way} wavefronts" if shared else f"global {way} sectors"
        found[key] += row["clocks"] if shared else row["sectors"]
    return found


def counted(name: str) -> dict[str, float]:
    assert NCU is not None
    command = [NCU, "--csv", "--clock-control", "none", "--kernel-name", "gemm"]
    command += ["--metrics", ",".join(METRICS.values()), sys.executable]
    command += [str(HERE / "launching.py"), name, f"--shape={SHAPE}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    assert lines, done.stdout[-2000:] + done.stderr[-2000:]
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    values = {row["Metric Name"]: float(row["Metric Value"].replace(",", "")) for row in rows}
    return {key: values[metric] for key, metric in METRICS.items()}


EXPLAINED = {
    ("tiled", "shared read wavefronts"): "the compiler joins neighbouring scalar reads",
    ("register_blocked", "shared read wavefronts"): "the compiler joins neighbouring scalar reads",
    ("tiled", "shared write wavefronts"): "stores that wait for reads are counted again",
    ("padded", "shared write wavefronts"): "stores that wait for reads are counted again",
}


@needs_ncu
@pytest.mark.parametrize("name", NAMES)
def test_the_hardware_counts_what_explain_predicts(name: str) -> None:
    ours, theirs = predicted(name), counted(name)
    print(json.dumps({"name": name, "predicted": ours, "counted": theirs}))
    for key in METRICS:
        if (name, key) not in EXPLAINED:
            assert theirs[key] == pytest.approx(ours[key], rel=TOLERANCE), key
