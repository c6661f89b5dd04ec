"""What fuzzing found once stays right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.calling.launches import Case
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.trial import check_runs, compile_text, judge
from gemmgen.proof.default_shapes import c2_shapes

FILES = sorted((Path(__file__).parent / "regressions").glob("*.sched"))


@pytest.mark.by_default("a_negated_product_in_a_sum")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_schedule_that_failed_once_holds(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    verdict = judge(text, Dice(file.stem), compiled=True)
    assert verdict.failure is None and not verdict.refused
    emitted = compile_text(text)
    assert emitted is not None
    assert check_runs(emitted, tuple(Case(shape) for shape in c2_shapes(emitted)))
