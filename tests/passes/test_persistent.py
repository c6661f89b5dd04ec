"""Persistent blocks are refused where something is made ready for one tile alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmgen.base.errors import Refusal
from gemmgen.base.source import Source
from gemmgen.ir.edit import edit_main, edit_operations
from gemmgen.ir.nodes import Contract, Copy
from gemmgen.language import parse_schedule
from gemmgen.passes.base import Stated
from gemmgen.passes.persistent import Persistent
from gemmgen.pipeline import rewrite

SCHEDULE = """
tile m=16 n=16 k=8
cache_shared A B
double_buffer A B stages=3
persistent
"""


def boxed(operation: Copy | Contract) -> Copy | Contract:
    """A copy into shared memory by the copy engine."""
    is_copy = isinstance(operation, Copy) and operation.dst.endswith("_shared")
    return replace(operation, mode="tma") if is_copy else operation


def test_barriers_of_the_copy_engine_count_phases_of_one_tile() -> None:
    schedule = parse_schedule(Source(SCHEDULE, "x.sched"))
    program = edit_main(rewrite(schedule)[-2].program, lambda k: edit_operations(k, boxed))
    stated = Stated.of(schedule, "persistent")
    assert stated is not None
    with pytest.raises(Refusal) as refused:
        Persistent.read(stated, schedule).apply(program)
    mistake = refused.value.mistake
    assert mistake.span == stated.span
    assert mistake.notes == (
        "the 3 barriers of the stages count phases from the block's beginning",
    )
    assert mistake.hint == "async_copy A B via=cp_async, or remove the line"
