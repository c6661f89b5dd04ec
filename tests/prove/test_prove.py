"""Facts that hold for all sizes: proved of gemmgen's kernels, refuted of planted mistakes."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import count

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.prove.goals import FACTS
from gemmgen.prove.prover import Proof, prove
from gemmgen.prove.questions import Questions
from gemmgen.prove.replay import confirmed
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .planting import EXAMPLES, HERE, Mistake, emitted, mistakes, without_requirement

IN_REACH = (
    "naive",
    "uncoalesced",
    "tiled",
    "transposed",
    "padded",
    "double_buffered",
    "register_blocked",
    "fused",
    "vectorized",
    "warp_tiled",
    "async_copy",
    "swizzled",
    "staged_output",
    "odd_extents",
    "persistent",
    "hilbert",
    "async_row_major",
    "best/batched",
    "best/bias_relu",
    "best/odd_mk_nk",
    "best/large_mk_nk",
    "types/bf16",
    "types/e4m3_scaled",
    "types/f16_fast",
    "types/f64_fast",
    "types/i8_scaled",
    "torch/gpt2_scores",
    "l2_hints",
    "tensor_core",
    "mma/mma",
    "mma/swizzled",
    "mma/stages",
    "mma/tf32",
    "mma/f64",
    "mma/fp8",
    "mma/int8",
    "mma/split_f32",
    "hopper/tma",
    "hopper/warp_specialized",
    "hopper/overlap_launch",
    "hopper/few_rows",
    "hopper/persistent",
    "hopper/cluster",
    "steps/mma_tma",
    "steps/wgmma_plain",
)
OWN = tuple(sorted(path.stem for path in (HERE / "schedules").glob("*.sched")))
SEEN_BY_NO_RUN = ("races", "alignment", "int32", "coverage", "global bounds")
"""Facts whose violations the interpreter may not see: it runs one statement after another, and
writes one number twice without harm."""
UNSEEN = (
    "an mbarrier that other threads may not see",
    "a stage that fewer warps have to return",
    "a product of terms that the schedule leaves out",
    "the first product is lacking where accumulators are computed again",
    "accumulators that are computed again are not zeroed",
    "a stage that one block's warps have to return",
    "a stage that all warps of the cluster but one have to return",
    "a share that begins with the tile's first row",
    "mbarriers that another block may use before they are initialized",
    "a block that exits before others arrive at its mbarriers",
    "a block that waits for itself alone before it exits",
    "a stage of several tiles that one block's warps have to return",
    "a share of each tile that begins with its first row",
    "a block of several tiles that exits before others arrive at its mbarriers",
    "mbarriers for several tiles that another block may use before they are initialized",
    "a split cluster that no block waits for",
    "a result of a count that is published by another barrier",
    "a consumer that does not wait for its turn",
    "the last stage of a tile is not returned",
)
"""Violations of other facts that it does not see: its numbers are finite and have few terms."""
ALL = mistakes()
BY_DEFAULT = ("no barrier before the tile is multiplied", "k and m swapped in one read")


FIRST = {(each.fact, each.program): each.name for each in reversed(ALL)}
"""Of each fact and program the first mistake."""


def of_its_level(mistake: Mistake) -> object:
    """The first mistakes are of the proof, the others exhaustive."""
    is_first = FIRST[mistake.fact, mistake.program] == mistake.name
    marks = () if is_first or mistake.name in BY_DEFAULT else pytest.mark.exhaustive
    return pytest.param(mistake, id=mistake.name, marks=marks)


def proof_of(kernel: Emitted) -> Proof:
    return prove(kernel.lowered.kernels[0], kernel.program.problem, 120.0)


@pytest.mark.by_default("naive", "tiled")
@pytest.mark.in_proof("vectorized", "persistent", "best/batched", *OWN)
@pytest.mark.parametrize("name", (*IN_REACH, *OWN))
def test_all_facts_are_proved(name: str) -> None:
    """The proof has the small ones and those that reach a line of ``gemmgen/prove`` which these
    don't.  26 others were traced, and reach no further line."""
    proof = proof_of(emitted(name))
    found = {outcome.fact: (outcome.status, outcome.reason) for outcome in proof.outcomes}
    assert found == dict.fromkeys(FACTS, ("proved", ""))
    assert proof.status == "proved" and proof.satisfiable
    assert proof.statements
    face = emitted(name).interface
    required = tuple(rule.text() for rule in face.requirements)
    prepared = [p.name for p in face.prepared]
    assert proof.assumed[: len(required)] == required
    others = [text for text in proof.assumed[len(required) :] if "gridDim" not in text]
    assert [text.split(" has ")[0] for text in others] == prepared


@pytest.mark.by_default(*BY_DEFAULT)
@pytest.mark.parametrize("mistake", [*map(of_its_level, ALL)])
def test_a_planted_mistake_is_refuted_by_its_fact_alone(mistake: Mistake) -> None:
    program, problem = mistake.planted(), emitted(mistake.program).program.problem
    proof = prove(program.kernels[0], problem, 60.0, (mistake.fact,))
    (outcome,) = proof.outcomes
    assert (proof.status, outcome.status) == ("refuted", "refuted"), outcome.reason
    assert outcome.finding is not None and outcome.finding.certain
    shown, said = confirmed(program, problem, outcome.finding)
    assert shown or mistake.fact in SEEN_BY_NO_RUN or mistake.name in UNSEEN, said


def test_each_fact_refutes_a_mistake() -> None:
    """So that none can be removed."""
    assert {each.fact for each in ALL} == set(FACTS)
    assert len({each.name for each in ALL}) == len(ALL) >= 345


def test_a_requirement_that_is_not_tight_is_not_needed() -> None:
    """The header asks for a little less than an int can hold: without that bound of M, no row of
    a tile exceeds it."""
    kernel = emitted("tiled")
    program = without_requirement(kernel.lowered, "M <= 2147483599")
    proof = prove(program.kernels[0], kernel.program.problem, 60.0, ("int32",))
    assert proof.status == "proved"


def test_rows_of_scales_need_their_leading_dimension() -> None:
    kernel = emitted("block_scales")
    program = without_requirement(kernel.lowered, "ldsb * 12 >= K")
    proof = prove(program.kernels[0], kernel.program.problem, 60.0, ("global bounds",))
    assert proof.status == "refuted"


@pytest.mark.parametrize("name", ["best/deep"])
def test_what_no_rule_covers_is_unknown_by_name(name: str) -> None:
    proof = proof_of(emitted(name))
    assert proof.status == "unknown"
    for outcome in proof.outcomes:
        assert outcome.status == "unknown" and outcome.reason


def test_a_fact_that_takes_too_long_is_unknown() -> None:
    kernel = emitted("naive")
    proof = prove(kernel.lowered.kernels[0], kernel.program.problem, 0.0, ("global bounds",))
    assert proof.status == "unknown"


@cache
def random_schedules() -> list[str]:
    """The first 20 of a seed that compile."""
    found: list[str] = []
    for index in count():
        text = schedule_at(3, index)
        with suppress(ScheduleError):
            compile_source(Source(text))
            found.append(text)
        if len(found) == 20:
            break
    return found


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("index", range(20))
def test_no_random_schedule_is_refuted(index: int, exhaustive: bool) -> None:
    """What is not proved in time is unknown, which is not what this test looks for."""
    kernel = compile_source(Source(random_schedules()[index]))
    questions = Questions(None if exhaustive else 5.0)
    proof = prove(kernel.lowered.kernels[0], kernel.program.problem, 30.0, questions=questions)
    assert [one.reason for one in proof.outcomes if one.status == "refuted"] == []


RIGHT = {
    "split_k of integers: a partial sum times one is added": """
gemm C[m, n] = A[m, k] * B[k, n]
dtype A=i8 B=i8 C=i32
tile m=32 n=32 k=8
register_block m=4 n=4
split_k parts=4 groups=2
""",
    "half of the threads prefetch: the others' registers do not matter": """
gemm scores[g, j, i] = q0[g, d, i] * keys[g, d, j]
target sm_90a
tile i=64 j=128 d=4
cache_shared q0[i, d] scores[j, i] keys[d, j]
register_block i=8 j=8 interleave=8
vectorize q0.global width=4
vectorize scores width=4
double_buffer q0 keys
async_copy scores via=tma
unroll tile_d=2
""",
    "a side of C is as long as k: searched with a number for k, tiles of C are not whole": """
gemm C[n, m] = A[k, m] * B[n, k]
assume K == M
tile m=32 n=32 k=1
cache_shared A[m, k] C[n, m]
register_block m=8 n=4 interleave=1
double_buffer A stages=3
async_copy A via=cp_async
unroll tile_k=6
split_k parts=6 groups=2
""",
    "zeros of a row outside C, which has as many rows as there are k": """
gemm C[m, n] = A[m, k] * B[k, n]
dtype A=f64 B=f64 C=f64 acc=f64
assume M == K
target sm_90
tile m=32 n=8 k=16
cache_shared A[k, m] B
warp_tile m=16 n=8
tensor_core via=mma
double_buffer A B stages=3
unroll tile_k=3
split_k parts=2
""",
    "split_k with roles: numbers of the producer's threads do not matter": """
gemm C[m, n] = A[m, k] * B[k, n]
dtype A=f16 B=f16
target sm_90a
tile m=64 n=16 k=16
cache_shared A B
warp_tile m=64 n=16
tensor_core via=mma
double_buffer A B stages=2
async_copy A B via=tma
split_k parts=2 reduce=atomic
warp_specialize producers=1
""",
    "as many columns as terms: with a number for both some columns are outside": """
gemm C[m, n] = A[k, n] * B[m, k]
assume N == K
bind x=n y=m
tile m=96 n=64 k=1
register_block m=3 n=8
persistent
""",
}
"""Schedules that were once refuted, and what they were refuted for."""


@pytest.mark.proof
@pytest.mark.parametrize("about", RIGHT)
def test_a_right_kernel_is_not_refuted(about: str) -> None:
    kernel = compile_source(Source(RIGHT[about]))
    facts = ("products", "coverage")
    proof = prove(kernel.lowered.kernels[0], kernel.program.problem, 30.0, facts)
    assert proof.status != "refuted", [one.reason for one in proof.outcomes]


def test_the_examples_in_reach_are_there() -> None:
    assert all((EXAMPLES / f"{name}.sched").is_file() for name in IN_REACH)
