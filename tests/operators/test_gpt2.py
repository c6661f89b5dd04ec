"""examples/torch/gpt2.py as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch" / "gpt2.py"


@pytest.mark.proof
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_logits_and_gradients_are_the_unpatched_models(dtype: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--dtype", dtype],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("logits off by") == 3
