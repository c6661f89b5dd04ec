"""C3 looks at the machine code of kernels whose warpgroups multiply."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest
from functions import with_functions

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source
from gemmgen.proof import multiplies_code
from gemmgen.proof.code_findings import Findings

FOLDER = Path(__file__).parents[1] / "handwritten"
PROMISED = {"warpgroup": 4, "warpgroups": 2, "warpgroup_mn_major": 2}
"""Of a step's elements of k, 16 by an instruction."""
ERRORS = {
    "half as many": ("k < BK; k += 16", "k < BK; k += 32", "has 2 HGMMA"),
}
NOTES = {
    "accumulators read between": (
        "gg_wgmma_end(acc);",
        "if (acc[0][0] == 1.0f) C[0] = 1.0f;\n    gg_wgmma_end(acc);",
        "serialized",
    ),
    "addresses that each lane computes": (
        "A_shared[stage])",
        "A_shared[(stage + thread / 128) % STAGES])",
        "R2UR",
    ),
}


SCHEDULE = """\
gemm            C[m, n] = A[m, k] * B[n, k]
dtype           A=bf16 B=bf16
target          sm_90a
tile            m=128 n=64 k=64
cache_shared    A B
warp_tile       m=64 n=64
tensor_core     via=wgmma
swizzle         A B
double_buffer   A B stages=3
async_copy      A B via=tma
warp_specialize producers=1
"""
TALL = SCHEDULE.replace("m=64 n=64", "m=128 n=64")
LONG = SCHEDULE.replace("k=64", "k=128")
PINGPONG = TALL.replace("producers=1", "producers=1 order=pingpong") + "persistent\n"
TRANSPOSED = SCHEDULE.replace("A[m, k] * B[n, k]", "A[k, m] * B[k, n]").replace("n=64", "n=128")
INTEGERS = LONG.replace("dtype           A=bf16 B=bf16", "dtype i8")
FLOATS = LONG.replace("A=bf16 B=bf16", "A=e4m3 B=e5m2")
TF32 = SCHEDULE.replace("A=bf16 B=bf16", "A=tf32 B=tf32")
TYPES = {"integers": (INTEGERS, 4), "FP8": (FLOATS, 4), "tf32": (TF32, 8)}
COUNTS = {
    **TYPES,
    "base": (SCHEDULE, 4),
    "tall": (TALL, 8),
    "long": (LONG, 8),
    "ping-pong": (PINGPONG, 8),
    "transposed": (TRANSPOSED, 4),
    "transposed, tall": (TRANSPOSED.replace("m=64 n=128", "m=128 n=128"), 8),
}


@pytest.fixture(autouse=True)
def tools() -> None:
    compilers.needs_sass()


def findings(before: str = "", after: str = "", name: str = "warpgroup") -> Findings:
    text = (FOLDER / f"{name}.cu").read_text(encoding="utf-8")
    assert before in text
    whole = with_functions(text.replace(before, after) if before else text)
    return multiplies_code.of_text(whole, "sm_90a", PROMISED[name])


@pytest.mark.proof
@pytest.mark.parametrize("name", PROMISED)
def test_the_loop_has_what_is_promised(name: str) -> None:
    assert findings(name=name) == Findings()


@pytest.mark.proof
@pytest.mark.parametrize("name", COUNTS)
def test_a_schedule_says_how_many(name: str) -> None:
    schedule, count = COUNTS[name]
    kernel = compile_source(Source(schedule))
    assert multiplies_code.multiplies(kernel.program, kernel.program.main) == count
    assert multiplies_code.findings(kernel) == Findings()


@pytest.mark.proof
@pytest.mark.parametrize("name", ERRORS)
def test_other_multiplications_are_errors(name: str) -> None:
    before, after, message = ERRORS[name]
    (error,) = findings(before, after).errors
    assert message in error


@pytest.mark.proof
@pytest.mark.parametrize("name", NOTES)
def test_what_is_only_slow_is_a_note(name: str) -> None:
    before, after, message = NOTES[name]
    found = findings(before, after)
    assert not found.errors
    assert any(message in note for note in found.notes)
