"""The bad-input table through the command line: each row a located error with a hint."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from time import monotonic, process_time

import pytest
from click.testing import CliRunner

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.language import VOCABULARY
from gemmgen.pipeline import compile_source
from gemmgen.schedule.spec import DirectiveSpec

from .hints import followed
from .rows import ROWS, Row
from .running import FILE, emit, refused

ROOT = Path(__file__).parents[2]
MEMORY = 300 << 20
SECONDS = 2.0
ROUNDS = 14


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.encode("ascii", "replace").decode())
def test_row(row: Row, folder: Path) -> None:
    start = process_time()
    result = emit(row.data, folder)
    assert process_time() - start < SECONDS
    if row.said is None:
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
        assert (folder / "out.cu").stat().st_size > 1000
        return
    place = refused(result, folder)
    assert row.place in (None, place)
    for fragment in row.said:
        assert fragment in result.stderr


def test_no_row_is_there_twice() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


JUDGEMENT = (
    "write acc for the sum",
    "write it like",
    "the directives are",
    "one statement a line",
    "a schedule is plain UTF-8",
    "the line `gemm",
    "numbers are written",
    "a name ",
    "names and numbers",
    "do a part of it",
    "take a part of the expression",
    "bracket a long sum",
    "words use the letters a to z",
    "an open bracket continues",
    "an epilogue's arithmetic",
    "indices are written in square",
    "change the tile, or the requirement",
    "write `where(condition",
    "use it, as in",
    "it takes ",
)
"""What a hint may leave to its reader, who alone knows what was meant."""


def _is_judgement(mistake: Mistake) -> bool:
    hint = mistake.hint
    if "is not in this version" in mistake.message:
        return True
    return hint.startswith(JUDGEMENT) or " takes " in hint or hint.endswith("=...`")


@pytest.mark.proof
def test_hints_can_be_followed_to_the_end() -> None:
    """A user who follows the first hint, again and again, has a kernel after a few rounds."""
    arrived = 0
    for row in ROWS:
        try:
            text = Source(row.data.decode()).cleaned().text
        except UnicodeDecodeError:
            continue
        said: list[str] = []
        for _ in range(ROUNDS):
            try:
                compile_source(Source(text))
                arrived += row.said is not None
                break
            except ScheduleError as error:
                first = error.mistakes[0]
                changed = followed(error.source.text, first)
            said.append(f"{first.message}; {first.hint}")
            if changed is None or changed == text:
                assert _is_judgement(first), f"{row.name}: {said}"
                break
            text = changed
        else:
            raise AssertionError(f"{row.name}: {said}")
    assert arrived >= 200


@pytest.mark.parametrize("spec", VOCABULARY.specs, ids=lambda spec: spec.name)
def test_a_directive_that_says_nothing_is_refused(spec: DirectiveSpec) -> None:
    """A word alone is a statement only where it takes neither an operand nor an argument."""
    tile = "" if spec.name == "tile" else "tile m=32 n=32 k=8\n"
    text = f"target sm_90a\n{tile}{spec.name}\n"
    if not spec.arguments and not spec.operands:
        compile_source(Source(text))
        return
    with pytest.raises(ScheduleError) as error:
        compile_source(Source(text))
    assert all(mistake.span is not None for mistake in error.value.mistakes)


@pytest.mark.parametrize("command", ["check", "verify", "emit", "explain", "fmt", "show"])
@pytest.mark.parametrize("suffix", [".cu", ".CPP", ".h", ".ptx"])
def test_a_file_of_cuda_is_refused_with_one_sentence(
    command: str, suffix: str, folder: Path
) -> None:
    (folder / f"my{suffix}").write_text("// a kernel\n" * 60)
    result = CliRunner().invoke(main, [command, f"my{suffix}"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.strip().count("\n") == 0 and "is CUDA C, not a schedule" in result.stderr


@pytest.mark.by_default("draw", "suggest")
@pytest.mark.parametrize("command", ["explain", "draw", "suggest"])
def test_gpus_have_names_in_capitals_or_not(command: str, folder: Path) -> None:
    (folder / FILE).write_text("tile m=32 n=32\n")
    what = ["--shape", "64"] if command == "suggest" else [FILE, "--shape", "64"]
    said = {CliRunner().invoke(main, [command, *what, "--gpu", x]).stdout for x in ("H100", "h100")}
    assert len(said) == 1 and said != {""}


WAYS = ("check", "show", "emit", "fmt")


@pytest.mark.parametrize("command", WAYS)
def test_every_command_that_reads_a_schedule_refuses_alike(command: str, folder: Path) -> None:
    for data in (b"", b"tille m=8\n", b"tile m=8\0", b"\xff\xfe", b"pad A by=(4\n"):
        (folder / FILE).write_bytes(data)
        result = CliRunner().invoke(main, [command, FILE])
        if command == "fmt" and not data:
            continue
        assert result.exit_code == 2 and result.stdout == ""
        assert result.stderr.startswith(f"{FILE}:1:")
        assert (folder / FILE).read_bytes() == data


SAMPLE = (
    "empty",
    "Latin-1",
    "1,000 names",
    "depth 200",
    "tile m=10^5000",
    "a large naive tile in shared memory",
    "33 threads",
    "kernel called 300 characters",
    "a list of mistakes",
    "a file of 100 MB",
    "standard input of 100 MB",
    "a file of one long line",
    "a line of arguments",
)


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.by_default("depth 200", "a file of 100 MB")
@pytest.mark.skipif(sys.platform != "linux", reason="limits are set and measured as on Linux")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_process_of_its_own_needs_little(name: str, folder: Path) -> None:
    path = folder / FILE
    made = {
        "a file of 100 MB": b"tile m=8 n=32  # and so on\n",
        "standard input of 100 MB": b"tile m=8 n=32\n",
        "a list of mistakes": b"oops\n" * 900,
        "a line of arguments": b"tile " + b" ".join(b"m%d=4" % i for i in range(7000)),
        "a file of one long line": b"fuse_epilogue acc" + b" + acc" * 40_000,
    }
    data = made.get(name) or next(row.data for row in ROWS if row.name == name)
    path.write_bytes(data)
    if "100 MB" in name:
        with path.open("r+b") as file:
            file.truncate(100 << 20)
    piped = name.startswith("standard input")
    arguments = ["emit", "-" if piped else FILE, "-o", "out.cu"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    with path.open("rb") as source:
        done = subprocess.run(
            [sys.executable, "-m", "gemmgen", *arguments],
            stdin=source if piped else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            timeout=60,
            preexec_fn=_limited,
        )
    wall, after = monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # On a busy machine the clock includes other tests.
    assert min(wall, spent) < SECONDS
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "error: " in done.stderr or "more than 256 KiB" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(folder)) == [FILE]


def test_a_large_file_is_not_read_to_its_end(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(100 << 20)
    result = CliRunner().invoke(main, ["emit", FILE])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"gemmgen: {FILE} has more than 256 KiB; a schedule is about ten lines\n"
    )
