"""What a fresh process spends, and what it imports."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from .running import EXAMPLES, ROOT, fresh

HEAVY = ("numpy", "cupy", "rich", "hypothesis", "cuda")


def spent(*arguments: str) -> float:
    """Seconds of CPU that ``python -m gemmgen`` takes, start and end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert fresh(*arguments).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_emit_takes_less_than_0_3_s():
    arguments = ("emit", str(EXAMPLES / "vectorized.sched"))
    assert min(spent(*arguments) for _ in range(5)) < 0.3


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
