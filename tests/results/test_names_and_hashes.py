"""A result holds for every spelling of its problem, and for as long as its code is the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.explore.results import freshness
from gemmgen.explore.results.canonical_names import CanonicalNames, canonical, renamed
from gemmgen.explore.results.code_hash import code_hash
from gemmgen.explore.results.freshness import current, stale
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule, compile_source
from gemmgen.schedule.formatting import format_schedule

from .samples import H200, SHAPE, result

ROOT = Path(__file__).parents[2]
SCHEDULES = sorted(
    path
    for folder in ("examples", "tests/golden", "tests/cases")
    for path in (ROOT / folder).rglob("*.sched")
)
HEADS = (
    "gemm S[h, i, j] = Q[h, i, d] * K[h, j, d]\nassume ldq == D\nassume J % 4 == 0\n"
    "tile i=64 j=64 d=16\ncache_shared Q[d, i] K[d, j]\nregister_block i=4 j=4\n"
    "bind x=i y=j\nunroll tile_d=2\n"
    "fuse_epilogue where(i <= j, acc * scale + bias[j] + R[h, i, j], beta * S[h, i, j])\n"
)


def test_names_become_canonical_everywhere() -> None:
    found = format_schedule(canonical(parse_schedule(Source(HEADS))))
    assert [" ".join(line.split()) for line in found.splitlines()] == [
        "gemm C[b, m, n] = A[b, m, k] * B[b, n, k]",
        "assume N % 4 == 0",
        "assume lda == K",
        "bind x=m y=n",
        "tile m=64 n=64 k=16",
        "cache_shared A[k, m] B[k, n]",
        "register_block m=4 n=4",
        "unroll tile_k=2",
        "fuse_epilogue where(m <= n, acc * s0 + x0[n] + x1[b, m, n], beta * C[b, m, n])",
    ]


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.stem)
def test_names_go_there_and_back(path: Path) -> None:
    """The schedule in canonical names is one of the language, and is this one in its own names."""
    try:
        schedule = parse_schedule(Source(path.read_text(encoding="utf-8")))
    except ScheduleError:
        pytest.skip("a search space, or refused on purpose")
    names = CanonicalNames.of(schedule)
    other = renamed(schedule, names)
    assert parse_schedule(Source(format_schedule(other))) == other
    assert renamed(other, names.reversed()) == schedule
    assert CanonicalNames.of(other).canonical


@pytest.mark.proof
@pytest.mark.parametrize("count", [1, pytest.param(60, marks=pytest.mark.proof)])
def test_names_of_random_schedules_go_there_and_back(count: int) -> None:
    """Of the fuzzer's; with the names of their epilogues, and every directive's words."""
    for index in range(count):
        schedule = parse_schedule(Source(schedule_at(27, index)))
        names = CanonicalNames.of(schedule)
        other = renamed(schedule, names)
        assert parse_schedule(Source(format_schedule(other))) == other, index
        assert renamed(other, names.reversed()) == schedule, index


def test_the_key_says_the_problem_and_nothing_else() -> None:
    texts = (
        "gemm Y[r, o] = X[r, i] * W[o, i]\nkernel mine\nfuse_epilogue acc + v[o]\n",
        "gemm C[m, n] = A[m, k] * B[n, k]\ntile m=32 n=32\nfuse_epilogue acc + bias[n]\n",
    )
    keys = {ProblemKey.of(parse_schedule(Source(text)), SHAPE) for text in texts}
    assert len(keys) == 1
    one = parse_schedule(Source(texts[1]))
    assert ProblemKey.of(one, SHAPE, [("A", 512), ("B", 520)]).pitches == (0, 520, 0)
    for other in (texts[1] + "dtype A=f16 B=f16 C=f16\n", texts[1].replace("acc +", "2 * acc +")):
        assert ProblemKey.of(parse_schedule(Source(other)), SHAPE) not in keys


def test_the_hash_is_of_code_alone() -> None:
    code = 'int x = 1; // one\n\n/* two\n lines */ asm("a // b");\n'
    same = 'int x = 1;\n    asm("a // b"); // another remark'
    assert code_hash(code) == code_hash(same)
    for other in (code.replace("1", "2", 1), code.replace("a //", "a /"), code.replace(" x", "x")):
        assert code_hash(other) != code_hash(code)


def test_the_hash_is_the_same_with_another_header() -> None:
    """Emitted comments cite the schedule; a directive at its default changes them alone."""
    emitted = compile_source(Source((ROOT / "examples" / "fused.sched").read_text("utf-8")))
    lines = emitted.text.splitlines()
    bare = "\n".join(x.split("//")[0] for x in lines if not x.lstrip().startswith("//"))
    assert any("//" in x for x in lines) and code_hash(bare) == code_hash(emitted.text)


def test_another_text_makes_a_result_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    found, results = result(), Results.open()
    slow = result(32, 40)
    results.record(found, slow)
    assert stale(found) == "" and results.best(found.problem, "H200") == found
    problem = parse_schedule(Source(found.problem.text))
    assert current(found, problem) is not None

    def changed(schedule: object) -> Emitted:
        emitted = compile_schedule(schedule)  # pyright: ignore[reportArgumentType]
        more = "int more;" if "m=64" in found.schedule else ""
        different = "m=64" in format_schedule(emitted.schedule)
        text = emitted.text + (more if different else "// another remark\n")
        return replace(emitted, text=text)

    monkeypatch.setattr(freshness, "compile_schedule", changed)
    freshness._compiled.cache_clear()
    try:
        assert "emits another text" in stale(found) and current(found, problem) is None
        assert stale(slow) == "" and results.best(found.problem, "H200") == slow
    finally:
        freshness._compiled.cache_clear()


def test_a_schedule_that_is_refused_now_is_stale() -> None:
    old = replace(result(), schedule=result().schedule.replace("cache_shared", "cache_shred"))
    assert "this version refuses its schedule" in stale(old)


def test_a_result_is_the_kernel_of_the_problem_it_is_asked_for() -> None:
    """The names and the kernel's name are the caller's."""
    text = (
        "gemm Y[r, o] = X[r, i] * W[i, o]\nkernel layer\ndtype X=f16 W=f16 Y=f16\n"
        "fuse_epilogue acc + v[o]\n"
    )
    problem = parse_schedule(Source(text))
    stored = "tile m=64 n=64 k=16\ncache_shared A B\ntensor_core via=mma\n"
    types = "dtype A=f16 B=f16 C=f16\n"
    found = MeasuredResult.of(types + stored + "fuse_epilogue acc + b[n]\n", SHAPE, H200, 1e-5)
    assert found.problem == ProblemKey.of(problem, SHAPE)
    emitted = current(found, problem)
    assert emitted is not None and emitted.schedule.problem_alone == problem
    assert "launch_layer(" in emitted.text
