"""Fragments that are split in registers, read before the loop and in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.emit import names_of
from gemmgen.pipeline import compile_source

PATH = Path(__file__).parents[1] / "cases" / "decompose" / "fragments_ahead.sched"


@pytest.mark.parametrize("name", ["A", "A_raw", "my_A"])
def test_registers_of_the_first_step_end_before_the_loop(name: str) -> None:
    """No name of a tensor was right here: the loop declared the same registers again."""
    text = PATH.read_text(encoding="utf-8").replace("A", name)
    emitted = compile_source(Source(text))
    assert emitted.text.count(f"unsigned {name}_raw[8];") == 2
    assert not names_of(emitted.text).repeated
