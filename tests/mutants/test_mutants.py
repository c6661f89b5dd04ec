"""The mutation run itself: what it changes, what it allows, and a sample of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from gemmgen.base.errors import UsageError
from gemmgen.passes.ladder import LADDER
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

from .__main__ import kernels, main
from .allowed import read_allowed
from .catching import Trials
from .everywhere import KINDS, everywhere, is_of_launcher, sampled
from .mutants import mutants
from .tally import Tried, tallies, write_table

SEED = 20261124
EACH = 5
"""The sample of ``make mutants``, and how many of each kernel are tried in the proof: the first of
24, of other kinds for each kernel, as three quarters of all kinds need."""
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
    monkeypatch.setattr(Trials, "verdict", lambda trials, mutant: None)
    monkeypatch.setattr(Trials, "by_compiler", lambda trials, mutant: None)
    monkeypatch.setattr(Trials, "is_same_program", lambda trials, mutant: False)
    naive = str(examples.path_of("naive"))
    assert main([naive, "--allow", str(empty)]) == 1
    assert "survives in line" in capsys.readouterr().out


PATHS = {Path(path).stem: path for path in kernels()}


@cache
def text_of(name: str) -> str:
    return compile_source(read_source(PATHS[name])).text


@pytest.mark.proof
def test_mistakes_of_all_kinds_are_planted() -> None:
    names = ("tensor_small", "batched_small", "cluster_wgmma", "split_wgmma", "mma_bf16")
    assert {mutant.kind for name in names for mutant in everywhere(text_of(name))} == set(KINDS)


def test_there_is_a_kernel_of_each_mechanism() -> None:
    """Each directive, and each word that one of its arguments may be, if it is not a default."""
    text = "\n".join(read_source(path).text for path in PATHS.values())
    stated = set(re.findall(r"^(\w+)|(?<= )(\w+=\w+)", text, re.MULTILINE))
    words = {word for found in stated for word in found}
    for rung in LADDER:
        assert rung.SPEC.name in words
        for argument in rung.SPEC.arguments:
            for choice in set(argument.choices) - {argument.default, argument.identity}:
                pattern = rf"(<\w>|{argument.name})={choice}".replace("<", "").replace(">", "")
                assert choice.startswith("<") or any(re.fullmatch(pattern, x) for x in words)


def test_mutants_are_of_all_parts() -> None:
    text = text_of("split_wgmma")
    found = everywhere(text)
    kernel, end = text.index("// ---- kernel ----"), text.index("// ---- end of kernel ----")
    front = text.index("gemm_split(", kernel)
    for first, last in ((0, kernel), (kernel, front), (front, end), (end, len(text))):
        assert sum(first <= mutant.start < last for mutant in found) >= 20
    assert any(is_of_launcher(mutant) for mutant in found)
    assert all(mutant.text != text for mutant in found)


PLANTED = {
    ("wait", "phase", "1 - phase"),
    ("barrier count", "STAGE_BYTES", "(STAGE_BYTES) / 2"),
    ("barrier count", "CLUSTER * (CONSUMERS / 32)", "(CLUSTER * (CONSUMERS / 32)) - 1"),
    ("cluster", "threadIdx.x % 32", "0"),
    ("cluster", "B_BLOCKS", "1"),
    ("registers", "232", "128"),
    ("descriptor", "512", "1024"),
    ("elected thread", "CONSUMERS", "CONSUMERS + 1"),
    ("statement", "gg_fence_async();", ";"),
    ("declaration", "__grid_constant__ ", ""),
    ("convergence", "__syncwarp();", ";"),
    ("asm modifier", ".release", ".relaxed"),
    ("function", "62", "61"),
    ("tensor map", "{N, M}"[1:-1], "M, N"),
    ("launch", "stream", "nullptr"),
    ("number", "1", "0"),
}


def test_mistakes_of_asynchronous_kernels_are_planted() -> None:
    """Parities, counts, masks, elected threads, descriptors, fields of tensor maps."""
    found = {(m.kind, m.before, m.after) for m in everywhere(text_of("cluster_wgmma"))}
    assert found >= PLANTED


@pytest.mark.proof
def test_a_few_are_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([PATHS["batched_small"], "--each", "12", "--most", "6", "--seed", "3"])
    message = capsys.readouterr().out
    assert status == 0, message
    assert " 0 survive" in message


def test_a_sample_alternates_between_kinds() -> None:
    found = everywhere(text_of("vectorized"))
    kinds = {mutant.kind for mutant in found}
    chosen = sampled(found, len(kinds) + 5, 1)
    assert len(chosen) == len({(m.start, m.before, m.after) for m in chosen}) == len(kinds) + 5
    assert {m.kind for m in chosen} == kinds
    assert sampled(found, len(chosen), 1) == chosen != sampled(found, len(chosen), 2)


def test_the_table_is_between_its_marks(tmp_path: Path) -> None:
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
    assert tried >= 400 and caught >= 0.98 * (tried - equivalent)
    assert [tried, caught, equivalent, survivors] == [
        sum(c) for c in zip(*counts.values(), strict=True)
    ]


@pytest.mark.proof
def test_the_samples_of_the_proof_have_most_kinds() -> None:
    chosen = [m for name in PATHS for m in sampled(everywhere(text_of(name)), EACH, SEED)]
    assert len({mutant.kind for mutant in chosen}) >= 0.75 * len(KINDS)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PATHS)
def test_a_sample_is_found_out_or_argued(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of another kind; all kernels together have most kinds."""
    status = main([PATHS[name], "--each", str(EACH), "--seed", str(SEED)])
    assert status == 0, capsys.readouterr().out
