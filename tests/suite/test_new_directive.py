"""CONTRIBUTING followed to the letter: a new directive in a copy of the repository.

``carveout percent=50`` is a hint: it sets one field of a node, which shows as one line of the text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MOST_FILES = 6

PASS = '''\
"""carveout: how much of a multiprocessor's memory is preferred as shared memory.

The driver may give less.

    work [m=8, n=32]
==> carveout percent=50
    work [m=8, n=32] carveout=50   # carveout percent=50
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.record import record
from gemmgen.ir.edit import edit_main
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec


@record
class Carveout:
    SPEC: ClassVar = DirectiveSpec(
        "carveout",
        example="carveout percent=50",
        arguments=(
            ArgumentSpec(
                "percent",
                minimum=0,
                maximum=100,
                required=True,
                identity=0,
                fuzz=((25, 50), (100,)),
            ),
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    percent: int
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, schedule: Schedule) -> Carveout:
        return Carveout(stated.integer("percent") or 0, stated)

    def apply(self, program: Program) -> Program:
        def prefer(kernel: Kernel) -> Kernel:
            origins = (*kernel.work.origins, self.stated.origin)
            work = replace(kernel.work, carveout=self.percent, origins=origins)
            return replace(kernel, work=work)

        return edit_main(program, prefer)
'''


@dataclass(frozen=True)
class Edit:
    """Lines that are added to a file, below the first line that contains ``below``."""

    path: str
    below: str
    lines: str


EDITS = (
    Edit(
        "gemmgen/passes/ladder.py",
        "from gemmgen.passes.cache_shared import",
        "from gemmgen.passes.carveout import Carveout",
    ),
    Edit("gemmgen/passes/ladder.py", "    LaunchBounds,", "    Carveout,"),
    Edit("gemmgen/ir/nodes.py", "    groups: int = 1", "    carveout: int = 0"),
    Edit("gemmgen/ir/lowered.py", "    launch: LaunchNames =", "    carveout: int = 0"),
    Edit("gemmgen/lower/kernel.py", "        launch,", "        context.kernel.work.carveout,"),
    Edit(
        "gemmgen/emit/kernel_view.py",
        '        "comment": _bounds_comment(kernel),',
        '        "carveout": kernel.carveout,',
    ),
    Edit(
        "gemmgen/emit/templates/kernel.j2",
        "{{ begin }}",
        "{% if carveout %}\n// carveout: {{ carveout }}%\n{% endif %}",
    ),
)
"""Existing files; the pass is a new one."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the directive."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("gemmgen", "docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "gemmgen/passes/carveout.py").write_text(PASS, encoding="utf-8")
    for edit in EDITS:
        path = root / edit.path
        lines = path.read_text(encoding="utf-8").splitlines()
        place = next(at for at, line in enumerate(lines) if edit.below in line)
        lines.insert(place + 1, edit.lines)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def ran(copy: Path, *arguments: str, input: str = "", fails: bool = False) -> str:
    """What Python prints in the copy."""
    environment = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'docs'}"}
    done = subprocess.run(
        [sys.executable, *arguments],
        input=input,
        capture_output=True,
        text=True,
        cwd=copy,
        env=environment,
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def gemmgen(copy: Path, *arguments: str, input: str = "", fails: bool = False) -> str:
    return ran(copy, "-m", "gemmgen", *arguments, input=input, fails=fails)


def test_few_files_are_touched_and_contributing_names_them() -> None:
    touched = {edit.path for edit in EDITS}
    assert len(touched) <= MOST_FILES
    for path in touched:
        assert f"`{path.removeprefix('gemmgen/')}`" in CONTRIBUTING, path


@pytest.mark.proof
def test_it_is_parsed_checked_and_formatted(copy: Path) -> None:
    text = "carveout percent=50\ntile m=16 n=16\n"
    assert gemmgen(copy, "fmt", "-", input=text) == (
        "tile            m=16 n=16\ncarveout        percent=50\n"
    )
    said = gemmgen(copy, "check", "-", input="carveout percent=101\n", fails=True)
    assert "carveout percent is 101, out of range" in said
    said = gemmgen(copy, "check", "-", input="carveout\n", fails=True)
    assert "as in `carveout percent=50`" in said
    assert "did you mean `carveout`?" in gemmgen(copy, "check", "-", input="carvout\n", fails=True)


def test_help_and_the_reference_have_it(copy: Path) -> None:
    listed = re.compile(r"^  carveout +how much of a multiprocessor's memory is", re.MULTILINE)
    assert listed.search(gemmgen(copy, "help"))
    assert "written:  carveout percent=50" in gemmgen(copy, "help", "carveout")
    show = "from gemmgen_docs import pages; print(pages.render('{{ passes() }}{{ directives() }}'))"
    page = ran(copy, "-c", show)
    assert "[`carveout`](directives.md#carveout)" in page
    assert "## carveout" in page and "| `percent` | 0 to 100 | an error | `percent=0` |" in page


def test_it_is_built_shown_and_emitted(copy: Path) -> None:
    built = "import gemmgen; print(gemmgen.Schedule().tile(m=16, n=16).carveout(percent=50))"
    text = ran(copy, "-c", built)
    assert "carveout=50   # tile m=16 n=16; carveout percent=50" in gemmgen(
        copy, "show", "-", "--pass", "carveout", input=text
    )
    assert "carveout=50" in gemmgen(copy, "show", "-", "--stage", "lowered", input=text)
    assert "// carveout: 50%" in gemmgen(copy, "emit", "-", input=text)
    assert "// carveout: " not in gemmgen(copy, "emit", "-", input="tile m=16 n=16\n")


@pytest.mark.proof
def test_every_layer_of_proof_holds(copy: Path) -> None:
    text = "tile m=16 n=16 k=8\ncache_shared A B\ncarveout percent=50\n"
    (copy / "mine.sched").write_text(text, encoding="utf-8")
    said = gemmgen(copy, "verify", "mine.sched", "--shape", "17x19x9")
    assert re.search(r"^ +C2 +passed", said, re.M), said


@pytest.mark.proof
def test_the_fuzzer_draws_it(copy: Path) -> None:
    draw = (
        "from gemmgen.fuzz.random_schedules import schedule_at\n"
        "from gemmgen.fuzz.factors import FACTORS\n"
        "print(FACTORS['carveout'])\n"
        "print(*(schedule_at(1, index) for index in range(4)))"
    )
    said = ran(copy, "-c", draw)
    assert said.startswith("('-', '25..50', '100')")
    assert "carveout percent=" in said
