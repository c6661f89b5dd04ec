"""Every mistake of a user is a sentence, exit code 2, and nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gemmgen.schedule.words import LATER

from .running import EXAMPLES, ROOT, fresh, gemmgen

NAIVE = str(EXAMPLES / "naive.sched")

USAGE = [
    (["emit"], "emit needs a schedule"),
    (["emit", NAIVE, "--schedule", NAIVE], "give one of them"),
    (["emit", "missing.sched"], "missing.sched: no such file"),
    (["emit", "missing/x.sched"], "no such file"),
    (["emit", "a\nb.sched"], "no such file"),
    (["emit", "x" * 300 + ".sched"], "can't be read"),
    (["emit", str(EXAMPLES)], "is a folder"),
    (["emit", "/dev/zero"], "more than 256 KiB"),
    (["emit", NAIVE, "-o", "missing/out.cu"], "there is no folder"),
    (["emit", NAIVE, "-o", str(EXAMPLES)], "is a folder"),
    (["emit", NAIVE, "-o", "/dev/null"], "is not a regular file"),
    (["emit", NAIVE, "-o", NAIVE], "is the schedule itself"),
    (["emit", NAIVE, "-o", ""], "is a folder"),
    (["emit", NAIVE, "-o", "a\0b"], "can't be written"),
    (["emit", NAIVE, "-o", "x" * 300], "can't be written"),
    (["emit", NAIVE, "--arch", "sm_13"], "'sm_13' is not one of"),
    (["emit", NAIVE, "--format", "exe"], "'exe' is not one of"),
    (["emit", NAIVE, "--set", "tile.m"], "KEY=VALUE"),
    (["emit", NAIVE, "--set", "tile.q=4"], "no argument of this file has that key"),
    (["emit", NAIVE, "--set", "t=4", "--set", "t=8"], "given twice"),
    (["emit", NAIVE, "--shape", "12", "--shape", "ax2"], "a shape is MxNxK"),
    (["emit", NAIVE, "--shape", "9999999999"], "at most 2147483647"),
    (["emit", NAIVE, "--shape=-1"], "a shape is MxNxK"),
    (["emit", NAIVE, "--shape", "4,5"], "a shape is MxNxK"),
    (["emit", NAIVE, "--shape", "4,m="], "a shape is MxNxK"),
    (["emit", NAIVE, "--shape", "b=4,m=4,n=4,k=4"], "there is no letter b; there are m, n, k"),
    (["verify", NAIVE, "--shape", "m=4,n=4"], "--shape lacks k: give m=256,n=256,k=256"),
    (["explain", NAIVE, "--shape", "64,k=4"], "--shape gives k twice"),
    (["explain", NAIVE, "--shape", "m=4,k=4,m=4"], "--shape gives m twice"),
    (["emit", NAIVE, "--check", "missing.cu"], "missing.cu: no such file"),
    (["emit", NAIVE, "--check", str(EXAMPLES)], "can't be read"),
    (["emit", NAIVE, "--check", "x", "-o", "y"], "writes nothing"),
    (["emit", NAIVE, "--name", "for"], "--name for: `for` can't be a kernel's name: it is a word"),
    (["emit", NAIVE, "--name", "A"], "--name A: `A` can't be a kernel's name: it is a tensor"),
    (["emit", NAIVE, "--name", "9x"], "--name 9x: a kernel's name has letters"),
    (["emit", NAIVE, "--name", "x\ntile m=8"], "--name x?tile m=8: a kernel's name has letters"),
    (["emit", NAIVE, "--name", ""], "a kernel's name has letters"),
    (["emit", NAIVE, NAIVE], "unexpected extra argument"),
    (["emit", NAIVE, "--fast"], "No such option"),
    (["emti", NAIVE], "No such command"),
    (["check"], "Missing argument"),
    (["check", "missing.sched"], "no such file"),
    (["fmt", "missing.sched"], "no such file"),
    (["fmt", str(EXAMPLES)], "is a folder"),
    (["help", "cache_read"], "did you mean `cache_shared`?"),
    *((["help", word], later.hint) for word, later in LATER.items()),
    (["help", "xyzzy"], "there are bind, tile"),
    (["example", "vectorised"], "did you mean vectorized?"),
    (["example", "../../etc/passwd"], "there is no example"),
    (["show", NAIVE, "--pass", "tile"], "tile is not a pass of this schedule"),
    (["verify", "missing.sched"], "no such file"),
    (["verify", NAIVE, "--require", "C9"], "'C9' is not one of"),
    (["verify", NAIVE, "--shape", "1x2"], "a shape is MxNxK"),
    (["ladder", NAIVE, "--size", "0"], "0 is not in the range"),
    (["ladder", "missing.sched"], "no such file"),
    (["ladder", "--prefixes"], "--prefixes takes one schedule"),
    (["ladder", "--update", "missing.md"], "missing.md"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), USAGE, ids=lambda v: None if v == "" else str(v)[:60]
)
def test_a_mistake_is_one_sentence(arguments: list[str], message: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = gemmgen(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr and "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_of_other_bytes_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "other.sched"
    path.write_bytes(b"tile m=8 n=8\n\x80\n")
    result = gemmgen("emit", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the byte 0x80 is not UTF-8" in result.stderr and "Traceback" not in result.stderr


def test_all_mistakes_of_a_file_are_reported_with_their_places():
    text = "tile m=100 n=64 k=0\nvectorise A width=3\n"
    result = gemmgen("emit", "-", input=text)
    assert result.exit_code == 2 and result.stdout == ""
    assert "<stdin>:1:" in result.stderr and "<stdin>:2:" in result.stderr
    assert "did you mean `vectorize`?" in result.stderr


def test_check_goes_on_after_a_wrong_file(tmp_path: Path):
    wrong = tmp_path / "wrong.sched"
    wrong.write_text("tile m=\n")
    result = gemmgen("check", wrong, NAIVE)
    assert result.exit_code == 2
    assert result.stdout.startswith(f"{NAIVE}: ok")
    assert f"{wrong}:1:" in result.stderr


def test_check_counts_a_search_space():
    result = gemmgen("check", "-", input="tile m={16, 32} n={16, 32, 64} k=8\n")
    assert result.stdout == "<stdin>: ok   a search space of 6 schedules: tile.m, tile.n\n"
    settled = gemmgen("check", "-", "--set", "tile.m=16", input="tile m={16, 32} n=32 k=8\n")
    assert "512 threads" in settled.stdout


def test_an_output_that_cannot_be_written_is_reported():
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gemmgen", "emit", NAIVE],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
    assert done.returncode == 2
    assert done.stderr == b"gemmgen: standard output can't be written: No space left on device\n"


def test_closed_standard_input_is_reported():
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m gemmgen emit - <&-"],
        capture_output=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr[:8]) == (2, b"gemmgen:")


@pytest.mark.proof
def test_a_fresh_process_has_the_same_exit_codes():
    assert fresh("emit", NAIVE).returncode == 0
    assert fresh("emit", "missing.sched").returncode == 2
    assert fresh("emit", "-", input=b"\xff\xfe").returncode == 2
