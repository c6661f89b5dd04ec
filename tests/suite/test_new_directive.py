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
MOST_FILES, MOST_IN_ALL = 6, 10

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
from gemmgen.schedule.model import Gemm
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
    def read(stated: Stated, gemm: Gemm) -> Carveout:
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
        '        "comment": _bounds_comment(kernel, cites),',
        '        "carveout": kernel.carveout,',
    ),
    Edit(
        "gemmgen/emit/templates/kernel.j2",
        "{{ begin }}",
        "{% if carveout %}\n// carveout: {{ carveout }}%\n{% endif %}",
    ),
)
"""Existing files; the pass is a new one."""

DOCUMENTED = (
    Edit("CHANGELOG.md", "- Directives of the ladder:", "- `carveout percent=50`: memory."),
    Edit(
        "docs/language/index.md",
        "| `launch_bounds blocks=2` |",
        "| `carveout percent=50` | how much memory is preferred as shared memory |",
    ),
    Edit(
        "examples/README.md",
        "| `odd_extents` |",
        "| `carveout` | half of the memory is preferred as shared memory | `tiled` |",
    ),
    Edit("tests/examples.toml", "[hilbert]", 'unmeasured = "no GPU was there"\n\n[carveout]'),
)
"""Where users are documented of it, and tests what they cannot derive of its example."""

NEW = {
    "examples/carveout.sched": """\
# Half of a multiprocessor's memory is preferred as shared memory.
gemm            C[m, n] = A[m, k] * B[k, n]
tile            m=16 n=16 k=8
cache_shared    A B
carveout        percent=50
""",
    "docs/data/combinations/carveout.toml": """\
[[combination]]
rule = "A preference, with any tile."
schedule = "carveout percent=50"
accepted = true

[[combination]]
rule = "A part is a percentage."
schedule = "carveout percent=101"
accepted = false
""",
    "tests/cases/carveout/docstring.case": """\
# What the docstring of the pass takes for granted.
given:
    tile m=8 n=32
apply:
    carveout percent=50
""",
    "tests/cases/carveout/a_share.case": """\
# A share is kept with the block's work.
given:
    tile m=16 n=16
apply:
    carveout percent=25
before:
    work [m=16, n=16]   # tile m=16 n=16
after:
    work [m=16, n=16] carveout=25   # tile m=16 n=16; carveout percent=25
""",
    "tests/cases/carveout/in_bands.sched": """\
# a preference, in bands
raster group=2
carveout percent=50
""",
}
"""New files besides the pass and the golden of the example, which is written by the tests."""

LISTS = (
    "tests/suite/test_file_names.py",
    "tests/suite/test_stated.py",
    "tests/pipeline/test_pipeline.py::test_the_ladder_has_the_order_of_the_design",
    "tests/pipeline/test_pipeline.py::test_what_a_pass_builds_on_is_above_it",
    "tests/schedule/test_mistakes.py",
    "tests/docs/test_reference.py",
    "tests/analyze/test_counters.py::test_every_rung_and_version_was_measured",
    "tests/golden/test_golden.py::test_every_golden_belongs_to_a_schedule",
)
"""Tests that compare all directives, examples or files with what is stated of them."""

OVER_ALL = (
    *("tests/hostile/test_table.py", "tests/passes/test_docstrings.py"),
    *("tests/passes/test_cases.py", "tests/passes/test_meaning.py", "tests/golden/test_golden.py"),
    *("tests/emit/test_text.py", "tests/docs/test_examples.py", "tests/emit/test_main.py"),
    *(
        "tests/nvrtc/test_spills.py",
        "tests/pipeline/test_pipeline.py",
        "tests/emit/test_compiles.py",
    ),
)
"""Tests over all directives, examples, goldens or schedules."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the directive."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("gemmgen", "docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "gemmgen/passes/carveout.py").write_text(PASS, encoding="utf-8")
    edited(root, EDITS)
    return root


def edited(root: Path, edits: tuple[Edit, ...]) -> None:
    """Adds the lines to the files of a copy."""
    for edit in edits:
        path = root / edit.path
        lines = path.read_text(encoding="utf-8").splitlines()
        place = next(at for at, line in enumerate(lines) if edit.below in line)
        lines.insert(place + 1, edit.lines)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def documented(copy: Path) -> Path:
    """The copy with all that tells users and tests of the directive."""
    hidden = shutil.ignore_patterns("__pycache__", "test_new_directive.py")
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=hidden)
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    edited(copy, DOCUMENTED)
    for name, text in NEW.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(text, encoding="utf-8")
    return copy


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
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def gemmgen(copy: Path, *arguments: str, input: str = "", fails: bool = False) -> str:
    return ran(copy, "-m", "gemmgen", *arguments, input=input, fails=fails)


def test_few_files_are_touched_and_contributing_names_them() -> None:
    touched = {edit.path for edit in EDITS}
    documented = {edit.path for edit in DOCUMENTED}
    assert len(touched) <= MOST_FILES and len(touched | documented) <= MOST_IN_ALL
    assert all(f"`{path}`" in CONTRIBUTING for path in documented)
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


@pytest.mark.proof
def test_help_and_the_reference_have_it(copy: Path) -> None:
    listed = re.compile(r"^  carveout +how much of a multiprocessor's memory is", re.MULTILINE)
    assert listed.search(gemmgen(copy, "help"))
    assert "written:  carveout percent=50" in gemmgen(copy, "help", "carveout")
    show = "from gemmgen_docs import pages; print(pages.render('{{ passes() }}{{ directives() }}'))"
    page = ran(copy, "-c", show)
    assert "[`carveout`](directives.md#carveout)" in page
    assert "## carveout" in page and "| `percent` | 0 to 100 | an error | `percent=0` |" in page


@pytest.mark.proof
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
    said = gemmgen(copy, "verify", "mine.sched", "--no-prove", "--shape", "17x19x9")
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


@pytest.mark.proof
def test_the_tests_know_it_from_its_own_files(documented: Path) -> None:
    """No list in a test names it: those over all directives, examples and schedules hold as they
    are, and take it."""
    pytest_ = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    new = ("-k", "carveout or preference")
    ran(documented, *pytest_, "--exhaustive", "--update-golden", *new, *OVER_ALL)
    assert (documented / "tests/golden/carveout.cu").exists()
    ran(documented, *pytest_, "--proof", *LISTS)
