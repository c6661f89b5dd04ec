"""Estimated registers against those that NVRTC reports for the examples."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import median

import compilers
import pytest

from gemmgen.analyze.register_estimate import OFF, TYPICAL, compiled_registers
from gemmgen.base.source import Source
from gemmgen.gpu import compiler
from gemmgen.pipeline import Emitted, compile_source, make_concrete

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(
    name
    for path in EXAMPLES.rglob("*.sched")
    if not (name := str(path.relative_to(EXAMPLES).with_suffix(""))).startswith("spaces/")
)
QUICK = {"naive", "tiled", "vectorized", "versions/v5", "split_k", "matvec"}


@cache
def emitted(name: str) -> Emitted:
    path = EXAMPLES / f"{name}.sched"
    return compile_source(Source(path.read_text(encoding="utf-8"), path.name))


def off(name: str) -> float:
    """By how much of the reported number the estimate is off."""
    program = emitted(name).program
    (kernel,) = make_concrete(program).kernels
    found = compiled_registers(
        program.main, program.target, kernel.blocks, len(program.problem.batch)
    )
    arch = compilers.measured_on(program.target)
    return abs(found / compiler.reported(emitted(name).text, arch).registers - 1)


@pytest.mark.by_default("vectorized", "naive")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.proof) for n in NAMES]
)
def test_no_estimate_is_off_by_more_than_it_says(name: str) -> None:
    compilers.needed()
    assert off(name) <= OFF


@pytest.mark.proof
def test_half_of_the_estimates_are_close() -> None:
    compilers.needed()
    assert median(map(off, NAMES)) <= TYPICAL


def test_launch_bounds_cap_the_estimate() -> None:
    program = emitted("vectorized").program
    assert compiled_registers(program.main, program.target, 2, 0) == 64 + 16 + 8 + 32
    assert compiled_registers(program.main, program.target, 3, 0) == 65536 // (3 * 256) // 8 * 8
