"""What a fresh process spends, and what it imports."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from .running import EXAMPLES, ROOT, fresh

HEAVY = ("numpy", "cupy", "rich", "hypothesis", "cuda")
FOR_MISTAKES = ("difflib", "decimal")
"""What messages about mistakes need."""

LIBRARIES = "click, jinja2, lark"
"""Imported before anything is counted: what they do is not gemmgen's."""
COUNTED = f"""
import sys
import {LIBRARIES}
before, lines = len(sys.modules), 0
def count(frame, event, _):
    global lines
    lines += event == "line"
    return None if frame.f_code.co_filename.startswith("<frozen") else count
sys.settrace(count)
from gemmgen.cli import main
main(["emit", "examples/vectorized.sched"], standalone_mode=False)
sys.settrace(None)
print(lines, len(sys.modules) - before, file=sys.stderr)
"""
MOST_LINES, MOST_MODULES = 596_000, 248
"""Lines of Python that emit executes, and modules that it imports.  Python 3.11 takes 553,000 and
240; 3.12 took 6% more lines than it and 3.13 five modules more; and 2% more are allowed."""
MOST_TIMES = 5
"""Times of the libraries' import that emit may take, 2.2 on an idle machine."""


def spent(*arguments: str) -> float:
    """Seconds of CPU that a process of Python takes, start and end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.mark.proof
def test_emit_does_little():
    """Work is counted, which is the same on each machine and with whatever runs beside it; the
    import of a large library, or what is done for each of many files, is seen."""
    fresh("emit", EXAMPLES / "vectorized.sched")  # leaves compiled modules and caches, as a user's
    command = [sys.executable, "-c", COUNTED]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    lines, modules = map(int, done.stderr.split())
    assert lines <= MOST_LINES and modules <= MOST_MODULES, f"{lines} lines, {modules} modules"


@pytest.mark.proof
def test_emit_takes_little():
    """What no line of Python shows (libraries of C, files, processes): only far too much fails, as
    seconds say little where other programs run."""
    emit = ("-m", "gemmgen", "emit", str(EXAMPLES / "vectorized.sched"))
    spent(*emit)
    times = [spent(*emit) / spent("-c", f"import {LIBRARIES}") for _ in range(3)]
    assert min(times) < MOST_TIMES, times


@pytest.mark.by_default("emit *")
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
    heavy = HEAVY if arguments[0] == "suggest" else (*HEAVY, "sqlite3")
    heavy += FOR_MISTAKES if arguments[0] == "emit" else ()
    code = (
        "import sys\nfrom gemmgen.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"sys.exit(', '.join(m for m in {heavy!r} if m in sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


RUN = """\
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count(), len(gc.get_objects()), file=sys.stderr))
sys.argv = ["gemmgen", "emit", "examples/naive.sched"]
from gemmgen.__main__ import run
run()
"""


def test_what_a_command_leaves_is_not_searched_at_the_end():
    done = subprocess.run([sys.executable, "-c", RUN], cwd=ROOT, capture_output=True, text=True)
    frozen, left = map(int, done.stderr.split())
    assert frozen > 10_000 > left


def test_importing_the_package_loads_nothing_of_it():
    code = "import gemmgen, sys; print(*sorted(m for m in sys.modules if 'gemmgen' in m))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "gemmgen\n"
