"""Warp stalls by reason, as Nsight Compute (``ncu``) measures them on the GPU of this machine.

A scheduler issues at most one instruction a clock, of one of its warps.  While it does, every other
warp that has not ended is stalled for some reason; ``smsp__average_warps_issue_stalled_X_per_issue_
active`` is how many are, on average, for reason X.  Their sum is a warp's clocks between two of its
instructions, so that a reason's share of the sum is its share of a warp's time.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys

from gemmgen.base import temporary
from gemmgen.base.errors import CannotCheck
from gemmgen.base.record import record
from gemmgen.gpu import device, nvcc
from gemmgen.gpu.launch_once import NOT_LAUNCHED
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import Emitted

SECTION = "WarpStateStats"
"""ncu's section of these metrics: which reasons there are depends on the architecture."""
_METRIC = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active(\.ratio)?")
_NOT_ISSUED = "_not_issued"
"""The end of a metric that counts clocks without an issue alone: a part of another's."""
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][-+]?\d+)?")
_SAID = {NOT_LAUNCHED: "", "==ERROR==": "ncu says: ", "==WARNING==": "ncu says: "}
"""Lines that say why nothing was measured, the best first."""
_SECONDS = 300


@record
class Stall:
    """``warps`` of a scheduler, on average, wait for ``reason`` (``long_scoreboard``) whenever an
    instruction is issued."""

    reason: str
    warps: float


@record
class Stalls:
    """What was measured, the most first, on the GPU of this name."""

    gpu: str
    reasons: tuple[Stall, ...]

    @property
    def total(self) -> float:
        """The warps of a scheduler: clocks of a warp from one of its instructions to the next."""
        return sum(stall.warps for stall in self.reasons)


def measured(emitted: Emitted, shape: Shape) -> Stalls:
    """The stalls of one launch at ``shape``.  ``CannotCheck`` says why nothing was measured."""
    cp = device.cupy()
    command = _ncu()
    with temporary.folder() as folder:
        path = os.path.join(folder, "schedule.sched")
        with open(path, "w", encoding="utf-8") as file:
            file.write(emitted.schedule.text)
        watched = (sys.executable, "-m", "gemmgen.gpu.launch_once", path, *map(str, shape))
        options = ("--csv", "--page", "raw", "--section", SECTION, "--launch-count", "1")
        printed = _printed((command, *options, "--kernel-name", emitted.name, *watched))
    reasons = parse(printed)
    return Stalls(device.name(cp.cuda.runtime.getDevice()), reasons)


def parse(printed: str) -> tuple[Stall, ...]:
    """The stalls in what ``ncu --csv --page raw`` prints: a row of names, one of units and one for
    each kernel, between lines of ncu and of the program.  ``CannotCheck`` if there are none."""
    lines = [line for line in printed.splitlines() if line.startswith('"')]
    names, *rows = csv.reader(lines) if lines else [[]]
    values = rows[-1] if len(rows) > 1 else []
    found: list[Stall] = []
    for name, value in zip(names, values, strict=False):
        match = _METRIC.fullmatch(name)
        number = value.replace(",", "")
        if match and not match[1].endswith(_NOT_ISSUED) and _NUMBER.fullmatch(number):
            found.append(Stall(match[1], float(number)))
    if not found:
        raise CannotCheck(_why(printed))
    return tuple(sorted(found, key=lambda stall: (-stall.warps, stall.reason)))


def _why(printed: str) -> str:
    """The line that says why ncu measured nothing: the program's own, or an error of ncu."""
    for beginning, said in _SAID.items():
        for line in printed.splitlines():
            if line.startswith(beginning):
                return said + line.removeprefix(beginning).strip()
    return "ncu reported no stalls"


def _ncu() -> str:
    search = os.pathsep.join([*nvcc.folders(), "/usr/local/cuda/bin"])
    found = shutil.which("ncu", path=search)
    if found is None:
        raise CannotCheck("ncu (Nsight Compute) is not on PATH, and not in CUDA_HOME")
    return found


def _printed(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotCheck(f"ncu did not end within {_SECONDS} seconds") from None
    return done.stdout + done.stderr
