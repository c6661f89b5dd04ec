"""Each level of the IR of each golden, example and case prints, and reads back equal."""

from __future__ import annotations

from pathlib import Path

import batches.schedules
import dtypes.schedules
import passes.schedules
import pytest

from gemmgen.base.source import Source
from gemmgen.expand import expand
from gemmgen.ir.expanded import ExpandedProgram
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.validate import verify
from gemmgen.language import parse_schedule
from gemmgen.lower import lower
from gemmgen.pipeline import rewrite

ROOT = Path(__file__).parents[2]
FILES = {
    str(path.relative_to(ROOT)): path
    for folder in ("examples", "tests/mutants/kernels")
    for path in sorted((ROOT / folder).rglob("*.sched"))
    if path.parent.name != "spaces"
}
TEXTS = {
    **{name: path.read_text(encoding="utf-8") for name, path in FILES.items()},
    **{name: case.text for name, case in passes.schedules.CASES.items()},
    **{f"batches: {name}": text for name, text in batches.schedules.SCHEDULES.items()},
    **{
        f"{schedule}, {types}": dtypes.schedules.text(schedule, types)
        for schedule, types in dtypes.schedules.EVERY
    },
}


@pytest.mark.by_default(
    "examples/async_copy.sched",
    "examples/fused.sched",
    "examples/hilbert.sched",
    "examples/l2_hints.sched",
    "examples/matvec.sched",
    "examples/persistent.sched",
    "examples/split_k.sched",
    "examples/staged_output.sched",
    "examples/swizzled.sched",
    "examples/tensor_core.sched",
    "examples/odd_extents.sched",
    "examples/types/bf16_linear.sched",
    "examples/uses/attention_values.sched",
    "examples/best/batched.sched",
    "examples/hopper/[pstw]*",
)
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", TEXTS)
def test_every_level_reads_back(name: str):
    program = None
    for step in rewrite(parse_schedule(Source(TEXTS[name]))):
        program = step.program
        verify(program)
        assert parse_ir(print_ir(program), Program) == program, step.directive
    assert program is not None
    expanded = expand(program)
    assert parse_ir(print_ir(expanded), ExpandedProgram) == expanded
    lowered = lower(expanded)
    assert parse_ir(print_ir(lowered), LoweredProgram) == lowered
