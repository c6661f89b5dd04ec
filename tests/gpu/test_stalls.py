"""Warp stalls on this machine's GPU, as ``explain --sass`` shows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import stalls
from gemmgen.pipeline import compile_source

from .test_counters import needs_ncu

EXAMPLES = Path(__file__).parents[2] / "examples"


@needs_ncu
@pytest.mark.parametrize("name", ("naive", "vectorized", "hopper/wgmma", "mma/split_f32"))
def test_the_reasons_are_a_warps_clocks(name: str) -> None:
    path = EXAMPLES / f"{name}.sched"
    found = stalls.measured(compile_source(Source(path.read_text(), name)), (1024, 1024, 1024))
    reasons = {stall.reason: stall.warps for stall in found.reasons}
    print(found)
    assert reasons["selected"] == pytest.approx(1, abs=0.05)
    # Clocks between two instructions of a warp: more than a scheduler's warps, if it idles.
    assert len(reasons) > 10 and 1 < found.total < 100


@needs_ncu
def test_explain_shows_them() -> None:
    path = EXAMPLES / "vectorized.sched"
    command = [sys.executable, "-m", "gemmgen", "explain", str(path), "--sass", "--shape", "1024"]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    print(text[:3000])
    assert "warp stalls by reason, measured by ncu on" in text
