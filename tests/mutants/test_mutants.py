"""The mutation run itself: what it changes, what it allows, and a sample of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from gemmgen.base.errors import UsageError
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

from .__main__ import kernels, main
from .allowed import read_allowed
from .catching import Trials
from .mutants import KINDS, mutants, sampled
from .tally import Tried, tallies, write_table

EACH = 13
"""Mutants of a kernel in the proof; ``make mutants`` tries twice as many for the page."""
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
KERNEL = """// ---- kernel ----
__global__ void gemm(int M, float *C)
{
    // a comment + 1
    const int m = threadIdx.x;
    __syncthreads();
    if (m < M && m >= 2) C[m] = fmaf(a, b[m], c);
}
// ---- end of kernel ----
after = 1 + 2;
"""


def changes() -> set[tuple[str, str]]:
    return {(mutant.before, mutant.after) for mutant in mutants(KERNEL)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("__syncthreads();", ";"),
        ("<", "<="),
        (">=", ">"),
        ("&&", "||"),
        ("m < M", "true"),
        ("2", "1"),
        ("2", "3"),
        ("x", "y"),
        ("fmaf(a, b[m], c)", "(a) * (b[m]) + (c)"),
        ("fmaf(a, b[m], c)", "c"),
        ("C[m] = fmaf(a, b[m], c);", ";"),
    ],
)
def test_changes(before: str, after: str) -> None:
    # only names that have a partner in the text are swapped
    text = KERNEL.replace("threadIdx.x", "threadIdx.x + threadIdx.y")
    assert (before, after) in {(mutant.before, mutant.after) for mutant in mutants(text)}


def test_changes_neither_comments_nor_what_follows_the_kernel() -> None:
    assert not any(before == "+" for before, _ in changes())


def test_a_mutant_differs_in_its_line_alone() -> None:
    for mutant in mutants(KERNEL):
        old, new = mutant.difference()
        assert len(old) == 1 and old != new
        assert mutant.text.count("\n") == KERNEL.count("\n")


def test_an_entry_without_an_argument_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "equivalent.txt"
    path.write_text("*\n- a\n+ b\n")
    with pytest.raises(UsageError, match="lacks its change or its argument"):
        read_allowed(path)


def test_every_known_equivalent_is_argued_and_of_a_known_kernel() -> None:
    known = {Path(path).stem for path in kernels()} | set(examples.LADDER)
    for entry in read_allowed(EQUIVALENT):
        assert len(entry.reason.split()) >= 5
        assert set(entry.names) <= {"*", *known}


@pytest.mark.proof
def test_a_survivor_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "equivalent.txt"
    empty.write_text("# none\n")
    monkeypatch.setattr(Trials, "verdict", lambda trials, text: None)
    monkeypatch.setattr(Trials, "is_same_program", lambda trials, text: False)
    naive = str(examples.path_of("naive"))
    assert main([naive, "--allow", str(empty)]) == 1
    assert "survives in line" in capsys.readouterr().out


PATHS = {Path(path).stem: path for path in kernels()}


@cache
def text_of(name: str) -> str:
    return compile_source(read_source(PATHS[name])).text


def test_mistakes_of_all_kinds_are_planted() -> None:
    kinds = {m.kind for name in ("tensor_small", "batched_small") for m in mutants(text_of(name))}
    assert kinds == set(KINDS)


@pytest.mark.proof
def test_a_few_are_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([PATHS["batched_small"], "--each", "12", "--most", "6", "--seed", "3"])
    message = capsys.readouterr().out
    assert status == 0, message
    assert " 0 survive" in message


def test_a_sample_has_kinds_in_turn() -> None:
    chosen = sampled(text_of("vectorized"), 24, 1)
    assert len(chosen) == len({(m.start, m.before, m.after) for m in chosen}) == 24
    assert {m.kind for m in chosen} == {m.kind for m in mutants(text_of("vectorized"))}
    assert sampled(text_of("vectorized"), 24, 1) == chosen != sampled(text_of("vectorized"), 24, 2)


def test_the_table_stands_between_its_marks(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("above\n<!-- mutants -->\nold\n<!-- /mutants -->\nbelow\n")
    mutant, other, *_ = mutants(KERNEL)
    tried = [Tried("one", mutant, "seen", False), Tried("one", other, None, True)]
    write_table(document, tallies(tried, ()))
    lines = document.read_text().splitlines()
    assert lines[0] == "above" and lines[-1] == "below" and "old" not in lines
    assert "| one | 2 | 1 | 1 | 0 |" in lines and "| all | 2 | 1 | 1 | 0 |" in lines
    document.write_text("no marks")
    with pytest.raises(UsageError, match="no marks for the table"):
        write_table(document, ())


def test_the_page_shows_enough_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "proof.md").read_text(encoding="utf-8")
    rows = [row.strip("|").split("|") for row in page.splitlines() if row.count("|") == 6]
    counts = {
        name.strip(): [int(n) for n in rest] for name, *rest in rows if rest[0].strip().isdigit()
    }
    tried, caught, equivalent, survivors = counts.pop("all")
    assert set(counts) == set(PATHS)
    assert tried >= 300 and caught >= 0.98 * (tried - equivalent)
    assert [tried, caught, equivalent, survivors] == [
        sum(c) for c in zip(*counts.values(), strict=True)
    ]


@pytest.mark.proof
@pytest.mark.parametrize("name", PATHS)
def test_a_sample_is_found_out_or_argued(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of those on the page, the first of its sample: of each kind that the kernel has."""
    kinds = {mutant.kind for mutant in mutants(text_of(name))}
    assert {mutant.kind for mutant in sampled(text_of(name), EACH, 0)} == kinds
    status = main([PATHS[name], "--each", str(EACH)])
    assert status == 0, capsys.readouterr().out
