"""The mutation run itself: what it changes, what it allows, and a sample of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen import examples
from gemmgen.errors import UsageError
from gemmgen.mutate.__main__ import main
from gemmgen.mutate.allowed import read_allowed
from gemmgen.mutate.mutants import mutants

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
    for entry in read_allowed(EQUIVALENT):
        assert len(entry.reason.split()) >= 5
        assert set(entry.names) <= {"*", *examples.LADDER, "async_copy", "odd_extents"}


def test_a_survivor_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "equivalent.txt"
    empty.write_text("# none\n")
    monkeypatch.setattr("gemmgen.mutate.trial.Trials.verdict", lambda trials, text: None)
    monkeypatch.setattr("gemmgen.mutate.trial.Trials.is_same_program", lambda trials, text: False)
    naive = str(examples.path_of("naive"))
    assert main([naive, "--allow", str(empty)]) == 1
    assert "survives in line" in capsys.readouterr().out


def test_a_sample_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(examples.path_of(name)) for name in ("double_buffered", "vectorized")]
    status = main([*files, "--seed", "1", "--most", "40", "--allow", str(EQUIVALENT)])
    told = capsys.readouterr().out
    assert status == 0, told
    assert "40 mutants: " in told
