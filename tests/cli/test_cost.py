"""What a fresh process spends, and what it imports."""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median, quantiles

import pytest

from .running import EXAMPLES, ROOT

HEAVY = ("numpy", "cupy", "rich", "hypothesis", "cuda")


MOST = 0.25
"""Seconds of CPU that ``gemmgen emit`` may take; 0.23 on two cores of 2.8 GHz."""
LIBRARIES, THEIRS = "import click, jinja2, lark", 0.116
"""What takes a good third of it, and its seconds there.  A machine that needs longer for this may
need as much longer for emit."""
TURNS = 9


def spent(command: list[str]) -> float:
    """Seconds of CPU that a process takes, start and end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.mark.proof
def test_emit_takes_little():
    """Each turn is compared with the libraries' import right before and after it: other programs
    may run meanwhile, and slow one process more than another.  It is too slow where
    three of four turns are: on a shared core emit alone is slowed down by up to a tenth."""
    emit = [sys.executable, "-m", "gemmgen", "emit", str(EXAMPLES / "vectorized.sched")]
    bare = [sys.executable, "-c", LIBRARIES]
    spent(emit)  # which leaves its compiled modules and its caches, as a user's first call does
    if spent(emit) < MOST:
        return
    turns = [(spent(bare), spent(emit), spent(bare)) for _ in range(TURNS)]
    slowness = median((before + after) / 2 / THEIRS for before, _, after in turns)
    own = quantiles((took * 2 * THEIRS / (before + after) for before, took, after in turns), n=4)[0]
    assert own < MOST, f"{own:.3f} s, on a machine {slowness:.2f} times as slow as the one meant"


@pytest.mark.by_default("emit *", "suggest *")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["emit", "examples/vectorized.sched"],
        ["check", "examples/naive.sched"],
        ["fmt", "--check", "examples/naive.sched"],
        ["show", "examples/naive.sched"],
        ["help", "tile"],
        ["example"],
        ["verify", "--help"],
        ["ladder", "--help"],
        ["suggest", "--shape", "1024"],
        ["tune", "--help"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_imported(arguments: list[str]):
    code = (
        "import sys\nfrom gemmgen.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"sys.exit(', '.join(m for m in {HEAVY!r} if m in sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_nothing_of_it():
    code = "import gemmgen, sys; print(*sorted(m for m in sys.modules if 'gemmgen' in m))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "gemmgen\n"
