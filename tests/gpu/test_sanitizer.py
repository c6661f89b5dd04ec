"""compute-sanitizer finds nothing in the ladder, and each of its tools finds a planted mistake."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
SANITIZER = shutil.which("compute-sanitizer", path="/usr/local/cuda/bin") or shutil.which(
    "compute-sanitizer"
)
LADDER = sorted(path.stem for path in EXAMPLES.glob("*.sched"))
BEST = ("large_km_kn", "large_mk_kn", "medium_mk_nk", "odd_mk_kn", "small_mk_kn")
TYPES = ("bf16_linear", "f16_fast", "f64_fast")
HOPPER, MMA = (
    tuple(f"{folder}/{path.stem}" for path in sorted((EXAMPLES / folder).glob("*.sched")))
    for folder in ("hopper", "mma")
)
"""A kernel of each mechanism of tensor cores, TMA, warp roles, clusters and split operands."""
TENSOR_CORES = ("bf16_1024", "bf16_128_rows", "bf16_2304_columns", "bf16_8192")
ON_TMA = (*HOPPER, *(f"best/{name}" for name in TENSOR_CORES))
NAMES = (*LADDER, *(f"types/{name}" for name in TYPES), *(f"best/{name}" for name in BEST))
FOUND = 9

needs_sanitizer = pytest.mark.skipif(SANITIZER is None, reason="compute-sanitizer is not here")

PLANTED = {
    "memcheck": "tiled:no guard",
    "racecheck": "double_buffered:no barrier",
    "synccheck": "tiled:divergent barrier",
    "initcheck": "naive:reads C",
}
PLANTED_IN_BOXES = {
    "memcheck": "hopper/warp_specialized:stores past M",
    "synccheck": "hopper/tma:barrier of a few",
    "initcheck": "hopper/persistent:reads the old C",
}
"""racecheck does not follow what TMA writes."""
PARTS = 4
"""Runs over which the kernels on TMA are divided: each process compiles its own."""


def sanitized(tool: str, *names: str) -> subprocess.CompletedProcess[str]:
    assert SANITIZER is not None
    command = [
        SANITIZER,
        "--tool",
        tool,
        "--error-exitcode",
        str(FOUND),
        "--kernel-name",
        "kns=gemm",
    ]
    command += [sys.executable, str(HERE / "launching.py"), *names]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@needs_sanitizer
@pytest.mark.parametrize("tool", PLANTED)
def test_finds_nothing_in_the_ladder(tool: str) -> None:
    done = sanitized(tool, *NAMES)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@needs_sanitizer
@pytest.mark.parametrize("tool", PLANTED)
def test_finds_nothing_in_kernels_of_mma_sync(tool: str) -> None:
    done = sanitized(tool, *MMA, "--shape=200x312x136")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@needs_sanitizer
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("tool", PLANTED_IN_BOXES)
def test_finds_nothing_in_kernels_on_tma(tool: str, part: int) -> None:
    done = sanitized(tool, *ON_TMA[part::PARTS], "--shape=300x516x40")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@needs_sanitizer
@pytest.mark.parametrize(("tool", "planted"), [*PLANTED.items(), *PLANTED_IN_BOXES.items()])
def test_finds_what_is_planted(tool: str, planted: str) -> None:
    done = sanitized(tool, planted)
    assert done.returncode == FOUND, done.stdout[-3000:] + done.stderr[-2000:]
