"""``gemmgen_golden`` in a user's repository."""

from __future__ import annotations

from pathlib import Path

import pytest

# pytester forgets what an inner run imports: what all of them need is here before.
import gemmgen.api.kernels
import gemmgen.base.output_file
import gemmgen.proof.cpu  # noqa: F401

pytest_plugins = ["pytester"]

SCHEDULE = "tile m=16 n=32 k=8\ncache_shared A B\nfuse_epilogue relu(acc)\n"
TEST = 'def test_kernel(gemmgen_golden):\n    gemmgen_golden("kernels/my.sched"{})\n'


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = pytester.mkdir("kernels")
    (folder / "my.sched").write_text(SCHEDULE)
    pytester.makepyfile(TEST.format(""))
    return folder


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "gemmgen.pytest_plugin", *arguments)


def test_a_missing_golden_fails_and_says_how_to_write_it(
    pytester: pytest.Pytester, repository: Path
) -> None:
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*my.cu: there is no such golden; pytest --gemmgen-update writes it"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not (repository / "my.cu").exists()


def test_an_update_writes_it_and_then_it_holds(pytester: pytest.Pytester, repository: Path) -> None:
    result = run(pytester, "--gemmgen-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*gemmgen goldens written*", "*my.cu"])
    assert (repository / "my.cu").read_text().startswith("// gemm:")
    run(pytester).assert_outcomes(passed=1)
    again = run(pytester, "--gemmgen-update")
    again.assert_outcomes(passed=1)
    again.stdout.no_fnmatch_line("*goldens written*")


def test_a_change_fails_with_a_diff(pytester: pytest.Pytester, repository: Path) -> None:
    run(pytester, "--gemmgen-update")
    (repository / "my.sched").write_text(SCHEDULE.replace("relu", "tanh"))
    before = (repository / "my.cu").read_text()
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*my.cu is not what *my.sched compiles to; pytest --gemmgen-update writes it again",
            "--- *my.cu",
            "+++ *my.sched, as emitted",
            "@@ *",
            "-// gemm: C[[]m, n[]] = relu(acc)*",
            "+// gemm: C[[]m, n[]] = tanh(acc)*",
        ]
    )
    assert (repository / "my.cu").read_text() == before


def test_a_wrong_schedule_is_reported_with_its_place(
    pytester: pytest.Pytester, repository: Path
) -> None:
    (repository / "my.sched").write_text("tille m=8 n=32\n")
    for arguments in ((), ("--gemmgen-update",)):
        result = run(pytester, *arguments)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            ["*my.sched:1:1: error: unknown directive `tille`", "*did you mean `tile`?"]
        )
    assert not (repository / "my.cu").exists()


def test_a_missing_schedule_is_reported_with_where_it_was_looked_for(
    pytester: pytest.Pytester, repository: Path
) -> None:
    (repository / "my.sched").unlink()
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["kernels/my.sched: there is no such schedule in *"])


def test_line_ends_are_distinguished(pytester: pytest.Pytester, repository: Path) -> None:
    run(pytester, "--gemmgen-update")
    golden = repository / "my.cu"
    golden.write_bytes(golden.read_bytes().replace(b"\n", b"\r\n"))
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*other line ends*.cu text eol=lf*"])


def test_paths_are_those_of_the_test_then_of_the_root(
    pytester: pytest.Pytester, repository: Path
) -> None:
    inner = pytester.mkdir("tests")
    (inner / "test_inner.py").write_text(TEST.format(""))
    run(pytester, "--gemmgen-update", "tests").assert_outcomes(passed=1)
    assert (repository / "my.cu").exists()
    (inner / "kernels").mkdir()
    (inner / "kernels" / "my.sched").write_text("tile m=8 n=32\n")
    run(pytester, "--gemmgen-update", "tests").assert_outcomes(passed=1)
    assert (inner / "kernels" / "my.cu").exists()


def test_sets_targets_and_other_names(pytester: pytest.Pytester, repository: Path) -> None:
    (repository / "my.sched").write_text("tile m={8, 16} n=32\n")
    settled = ', "my_8.cu", set={"tile.m": 8}, arch="sm_90"'
    pytester.makepyfile(TEST.format(settled))
    run(pytester, "--gemmgen-update").assert_outcomes(passed=1)
    assert "tile            m=8 n=32" in (repository / "my_8.cu").read_text()
    assert "target          sm_90" in (repository / "my_8.cu").read_text()
    run(pytester).assert_outcomes(passed=1)
    pytester.makepyfile(TEST.format(', set={"tile.k": 8}'))
    run(pytester).assert_outcomes(failed=1)


def test_a_golden_that_cannot_be_written_fails(pytester: pytest.Pytester, repository: Path) -> None:
    (repository / "my.cu").mkdir()
    result = run(pytester, "--gemmgen-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*my.cu is a folder*"])
    run(pytester).assert_outcomes(failed=1)


@pytest.mark.proof
def test_verify_runs_the_golden(pytester: pytest.Pytester, repository: Path) -> None:
    (repository / "my.sched").write_text("tile m=4 n=8\n")
    pytester.makepyfile(TEST.format(", verify=True"))
    run(pytester, "--gemmgen-update").assert_outcomes(passed=1)
    run(pytester).assert_outcomes(passed=1)


PLANTED = """
import pytest
from gemmgen.proof import cpu
from gemmgen.proof.outcome import failed, skipped


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    monkeypatch.setattr(cpu, "check", lambda subject: {outcome})
"""


def test_a_wrong_kernel_fails_and_is_not_written(
    pytester: pytest.Pytester, repository: Path
) -> None:
    pytester.makeconftest(PLANTED.format(outcome='failed("C2", "C: 3 of 6 elements differ")'))
    pytester.makepyfile(TEST.format(", verify=True"))
    result = run(pytester, "--gemmgen-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the kernel of *my.sched is wrong: C: 3 of 6 elements differ"])
    assert not (repository / "my.cu").exists()


def test_what_was_not_run_is_skipped_and_not_passed(
    pytester: pytest.Pytester, repository: Path
) -> None:
    run(pytester, "--gemmgen-update")
    pytester.makeconftest(PLANTED.format(outcome='skipped("C2", "this needs g++")'))
    pytester.makepyfile(TEST.format(", verify=True"))
    result = run(pytester, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*not run: this needs g++*"])


@pytest.mark.proof
def test_nothing_heavy_is_imported(pytester: pytest.Pytester, repository: Path) -> None:
    pytester.makepyfile("""
        import sys

        BEFORE = set(sys.modules)

        def test_kernel(gemmgen_golden):
            assert not any(m in BEFORE for m in ("lark", "jinja2", "numpy", "gemmgen.api.kernels"))
            gemmgen_golden("kernels/my.sched")
            assert not any(m in sys.modules for m in ("numpy", "gemmgen.sim", "gemmgen.proof"))
        """)
    arguments = ("-p", "gemmgen.pytest_plugin", "--gemmgen-update")
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=1)
