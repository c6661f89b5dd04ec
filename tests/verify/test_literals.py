"""Some call of C2 crosses each constant of a text, so that a mistake beyond one shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.pipeline import compile_source
from gemmgen.proof import cpu
from gemmgen.proof.cases import cases, cases_of, crossing, not_crossed, reaching
from gemmgen.proof.default_shapes import across, c2_shapes
from gemmgen.proof.literals import MOST, Crossing, constants, definitions, uncrossed
from gemmgen.proof.outcome import Subject
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

from .subjects import subject

SPLIT = """\
target sm_90a
gemm C[m, n] = A[m, k] * B[n, k]
tile m=64 n=32 k=32
cache_shared A B
decompose into=bf16
tensor_core via=wgmma promote=64
swizzle A B
double_buffer A B
async_copy A B via=tma
"""
TILED = "tile m=16 n=16 k=8\ncache_shared A[k, m] B\n"
A_GRID = "(long long)M * ((K - 1) / 1024 + 1)), 256, 0, stream>>>"
B_SPLIT = "if (K > 0)\n        gemm_split<<<static_cast<unsigned>((long long)N"
PLANTED = {
    "a grid that is rounded down": (SPLIT, A_GRID, A_GRID.replace("(K - 1)", "K")),
    "B split for K < 1024": (SPLIT, B_SPLIT, B_SPLIT.replace("K > 0", "K > 0 && K < 1024")),
    "A split for K < 2048": (SPLIT, "if (K > 0)\n", "if (K > 0 && K < 2048)\n"),
    "columns below 1024": (SPLIT, "column < columns)", "column < columns && column < 1024)"),
    "rows of B below 1500": (SPLIT, "if (column <", "if (row < 1500 && column <"),
    "an exact multiple": (TILED, "k < K && n < N", "k < K && n < N && K % 700 != 0"),
    "from 3000 rows on": (TILED, "m < M && k < K", "m < min(M, 3000) && k < K"),
    "a loop that ends early": (TILED, "tile_k < K;", "tile_k < K - (K > 2000);"),
}


def calls_across(wrong: Subject) -> tuple[cpu.Case, ...]:
    emitted = wrong.emitted
    others = (*cases(c2_shapes(emitted)), *reaching(emitted))
    return crossing(emitted, others)


@pytest.mark.by_default("from 3000*")
@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_beyond_a_constant_is_found(name: str) -> None:
    schedule, before, after = PLANTED[name]
    emitted = subject(schedule).emitted
    assert before in emitted.text, "mend this test"
    wrong = replace(emitted, text=emitted.text.replace(before, after, 1))
    only = calls_across(Subject(wrong))
    assert set(only) <= {replace(case, watched=False) for case in cases_of(wrong)}
    assert cpu.first_complaint(cpu.Caller(wrong), wrong.text, only, warn=False) is not None


GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = [name for name in examples.names() if not name.startswith(("spaces/", "versions/"))]
SCHEDULES = {name: examples.path_of(name) for name in NAMES}
SCHEDULES |= {f"golden/{path.stem}": path for path in sorted(GOLDEN.glob("*.sched"))}
SOME = pytest.mark.by_default("hopper/split_f32", "split_k", "best/deep", "matvec", "naive")


@SOME
@pytest.mark.parametrize("name", SCHEDULES)
def test_each_constant_of_each_text_is_crossed(name: str) -> None:
    """Unless a requirement excludes it: N % 4 == 0 leaves no N that 4 does not divide."""
    emitted = compile_source(read_source(str(SCHEDULES[name])))
    known = cases_of(emitted)
    for each in uncrossed(constants(emitted.text), [case.shape for case in known]):
        assert not each.is_done_by(across(emitted, each)[each.letter]), each
    assert not_crossed(emitted, known) == ()


@SOME
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_definition_is_read(name: str) -> None:
    text = compile_source(read_source(str(SCHEDULES[name]))).text
    defined = re.findall(r"(?:constexpr int|^constexpr int [^;]*?,)\s+(\w+) = ", text, re.M)
    assert defined and set(defined) <= set(definitions(re.sub(r"//.*", "", text)))


def test_what_no_call_crosses_is_said() -> None:
    emitted = subject(f"{TILED}register_block m=4 n=4\n".replace("16", "64")).emitted
    assert "k < K && n < N" in emitted.text, "mend this test"
    text = emitted.text.replace("k < K && n < N", "k < K && n < N && k < 60000", 1)
    wide = replace(emitted, text=text)
    assert not_crossed(wide, cases_of(wide)) == (60000,)


def test_constants_are_operands_in_code() -> None:
    text = """\
// ---- kernel ----
constexpr int BK = 8, TWO = 2 * BK, BYTES = TWO * sizeof(float);
static_assert(BK <= 1000, "at most 1000 < 1001");
// k < 999
wait<62>(); f(998, "k < 997");
if (k < 500 && 600 > k && x % 0x20 == 0 && y >= TWO) k += 7 * min(k, 400) / (BK * 3);
"""
    assert constants(text) == (2, 3, 7, 8, 16, 32, 400, 500, 600)
    assert {each.constant for each in uncrossed((8, MOST + 1), [(8, 9, 0)])} == {8}


def test_a_crossing_has_a_second_step_and_a_part() -> None:
    assert Crossing(1024, 2, exact=False).extent == 2049
    assert Crossing(1024, 2, exact=True).extent == 1024
