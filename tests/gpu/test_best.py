"""examples/best, sizes and versions on a GPU: right against cuBLAS, and the bits of the CPU run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.calling import launches
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import gpu as layer
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit

from .sides import Sides

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(
    f"{folder}/{path.stem}"
    for folder in ("best", "sizes", "versions")
    for path in (EXAMPLES / folder).glob("*.sched")
)
SHAPES = ((1, 1, 1), (33, 70, 37), (130, 261, 40), (257, 129, 0))


def emitted(name: str) -> Emitted:
    text = (EXAMPLES / f"{name}.sched").read_text(encoding="utf-8")
    return compile_source(Source(text, name))


@pytest.mark.parametrize("name", NAMES)
def test_is_right_against_cublas_and_exact_integers(name: str) -> None:
    outcome = layer.check(Subject(emitted(name)))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", NAMES)
def test_gives_the_bits_of_the_cpu_run(name: str) -> None:
    """Of tensor cores, which sum in their own order, on integers."""
    kernel = emitted(name)
    sides = Sides(kernel)
    for shape in SHAPES:
        for alpha, beta in ((0.7, -1.0), (1.0, 0.0)):
            sides.check(launches.Case(fit(kernel, shape), "normal", alpha, beta, pad=4), name)
    sides.close()
