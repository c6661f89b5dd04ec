"""The files of tests/cases: a schedule, one directive more, and what its pass does.

A file is a comment and sections, each a name with its lines below it:

    # A pad lengthens the rows of a tile.
    given:
        tile m=16 n=16 k=8
        cache_shared A[k, m]
    apply:
        pad A by=4
    before:
        tile A_shared[k=8, m=16] f32 of=A   # cache_shared A[k, m]
    after:
        tile A_shared[k=8, m=16] f32 of=A pad=4   # cache_shared A[k, m]; pad A by=4

``before`` and ``after`` are excerpts of the printed program; both programs are run, and compute the
same.  In place of them ``error`` is the
whole message, and ``fixed`` the hint taken: its lines replace those of the same directive, or join
them, and the schedule then compiles.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from hostile.hints import followed

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import print_ir
from gemmgen.language import parse_schedule
from gemmgen.passes.ladder import LADDER
from gemmgen.pipeline import compile_source, rewrite
from passes.equality import difference
from passes.excerpts import missing

FOLDER = Path(__file__).parents[1] / "cases"
FILES = sorted(FOLDER.glob("*/*.case"))
SECTIONS = ("given", "apply", "before", "after", "error", "fixed")
Case = dict[str, list[str]]


@functools.cache
def read(path: Path) -> Case:
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# "), f"{path.name}: its first line says what it shows"
    sections: Case = {}
    name = ""
    for line in lines:
        if line.startswith("    "):
            sections[name].append(line[4:])
        elif line:
            name = line.removesuffix(":")
            assert name in SECTIONS and name not in sections, f"{path.name}: {line}"
            sections[name] = []
    return sections


def source(lines: list[str]) -> Source:
    return Source("\n".join(lines) + "\n", "x.sched")


@functools.cache
def refusal(text: str) -> ScheduleError | None:
    """What the compiler says to a schedule; None: it makes a kernel of it."""
    try:
        compile_source(Source(text, "x.sched"))
    except ScheduleError as error:
        return error
    return None


def rewritten(lines: list[str], directive: str) -> tuple[Program, Program]:
    """The program that the pass of ``directive`` is given, and what it makes of it."""
    steps = rewrite(parse_schedule(source(lines)))
    (at,) = (i for i, step in enumerate(steps) if step.directive == directive)
    return steps[at - 1].program, steps[at].program


def fixed(case: Case) -> list[str]:
    """The schedule with the lines of ``fixed`` in place of those of the same directives."""
    words = {line.split()[0] for line in case["fixed"]}
    kept = [line for line in (*case.get("given", []), *case["apply"])]
    return [line for line in kept if line.split()[0] not in words] + case["fixed"]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


REWRITES = [path for path in FILES if "error" not in read(path)]
REFUSALS = [path for path in FILES if "error" in read(path)]


@functools.cache
def programs_of(path: Path) -> tuple[Program, Program]:
    (apply,) = read(path)["apply"]
    return rewritten([*read(path).get("given", []), apply], apply.split()[0])


@pytest.mark.parametrize("path", REWRITES, ids=named)
def test_rewrites(path: Path) -> None:
    for section, program in zip(("before", "after"), programs_of(path), strict=True):
        text = print_ir(program)
        lost = missing(read(path).get(section, []), text)
        assert lost is None, f"{section}: no line `{lost}` in its place in\n{text}"


@pytest.mark.by_default(
    "[!cdlsw]*/docstring",
    "cache_shared/docstring",
    "double_buffer/docstring",
    "register_block/interleaves",
    "split_k/docstring",
    "warp_tile/docstring",
)
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("path", REWRITES, ids=named)
def test_rewrites_keep_what_is_computed(path: Path) -> None:
    assert difference(*programs_of(path)) is None


@pytest.mark.parametrize("path", REFUSALS, ids=named)
def test_refuses(path: Path) -> None:
    case = read(path)
    said = refusal(source([*case.get("given", []), *case["apply"]]).text)
    assert said is not None and str(said).splitlines() == case["error"]


@pytest.mark.by_default("tile/*", "cache_shared/*", "split_k/*", "limits/*")
@pytest.mark.parametrize("path", [p for p in REFUSALS if "fixed" in read(p)], ids=named)
def test_the_hint_helps(path: Path) -> None:
    assert refusal(source(fixed(read(path))).text) is None


TO_JUDGE = {
    "cache_shared/refuses_a_letter_that_numbers_matrices",
    "fuse_epilogue/refuses_to_gather_from_other_matrices",
    "fuse_epilogue/refuses_to_leave_out_the_sum",
    "limits/refuses_a_requirement_on_shared_memory",
    "limits/refuses_rows_that_are_products",
    "limits/refuses_a_requirement_on_threads",
    "split_k/refuses_lanes_of_reads_across_terms",
    "tensor_core/refuses_micro_tiles",
    "tile/refuses_a_letter_that_numbers_matrices",
    "warp_tile/refuses_what_no_micro_tile_fills",
}
"""Refusals whose hints state a choice, and no directive."""


@pytest.mark.by_default(*map(named, REFUSALS[::3]))
@pytest.mark.parametrize("path", REFUSALS, ids=named)
def test_hints_are_followed_to_a_kernel(path: Path) -> None:
    """A user who writes what each hint says, word by word, succeeds."""
    case = read(path)
    text, said = source([*case.get("given", []), *case["apply"]]).text, list[str]()
    for _ in range(10):
        error = refusal(text)
        if error is None:
            assert named(path) not in TO_JUDGE
            return
        first = error.mistakes[0]
        said.append(f"{first.message}; {first.hint}")
        changed = followed(error.source.text, first)
        if changed is None or changed == text:
            break
        text = changed
    assert named(path) in TO_JUDGE, said


@pytest.mark.parametrize(
    "rung", (*LADDER, "fuse_epilogue"), ids=lambda r: getattr(r, "__name__", r)
)
def test_every_pass_has_two_rewrites(rung: object) -> None:
    name = rung if isinstance(rung, str) else rung.SPEC.name
    assert sum(path.parent.name == name for path in REWRITES) >= 2
