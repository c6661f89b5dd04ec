"""A new PTX instruction in a copy of the package: a device function, a row, and its two models.

``st.global.cs`` stores what is not read again.  The copy's lowering stores C with it; both models
find that the kernel computes what it should.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

FILE = "gemmgen/emit/intrinsics/store_streaming.cuh"
FUNCTION = """\
// st.global.cs: a store of what is not read again.
__device__ __forceinline__ void gg_store_streaming(float *target, float value) {
    asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(target), "f"(value) : "memory");
}
"""
EDITS = {
    "gemmgen/ir/instruction_table.py": (
        "_ROWS = (\n",
        """\
_ROWS = (
    InstructionRow("store_streaming", "st.global.cs", OLDEST, "write", _SUM),
""",
    ),
    "gemmgen/interpreter/workspace.py": (
        "NODES: Statements = {",
        """\
def _store_streaming(node: Instruction, code: Code) -> Step:
    target, value = node.operands
    memory, index = code.element(target)
    run = converted(code.expression(value), memory.kind).run
    return lambda mask: memory.store(index(mask), run(mask), mask)


NODES: Statements = {"store_streaming": _store_streaming, """,
    ),
    "gemmgen/sim/ptx.h": (
        "GG_MODEL void red_relaxed_gpu_add_f32(",
        """\
GG_MODEL void st_global_cs_f32(Generic a, float value) { *pointer_to<float>(a) = value; }
GG_MODEL void red_relaxed_gpu_add_f32(""",
    ),
}
"""The existing files that change: in each a text, and what replaces it."""

USE = """\
import sys
from gemmgen import pipeline
from gemmgen.cli import main
from gemmgen.ir.control import Assign
from gemmgen.ir.expr import Element
from gemmgen.ir.instruction import instruction
from gemmgen.ir.traversal import rebuilt

def streamed(node):
    match node:
        case Assign(Element("C") as target, value):
            return instruction("store_streaming", target, value)
    return rebuilt(node, streamed)

lower = pipeline.lower
pipeline.lower = lambda program: streamed(lower(program))
sys.exit(main(sys.argv[1:]))
"""
"""Runs a command whose lowering stores C by the instruction."""

SCHEDULE = "tile m=16 n=16 k=8\ncache_shared A B\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("copy")
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gemmgen", root / "gemmgen", ignore=hidden)
    (root / FILE).write_text(FUNCTION, encoding="utf-8")
    for name, (old, new) in EDITS.items():
        text = (root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, name
        (root / name).write_text(text.replace(old, new), encoding="utf-8")
    (root / "use.py").write_text(USE, encoding="utf-8")
    (root / "streamed.sched").write_text(SCHEDULE, encoding="utf-8")
    return root


def gemmgen(copy: Path, *arguments: str) -> str:
    """What a command prints in the copy."""
    environment = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, "use.py", *arguments],
        capture_output=True,
        text=True,
        cwd=copy,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_three_files_change_and_contributing_names_them() -> None:
    assert len(EDITS) <= 3
    for path in ("ir/instruction_table.py", "emit/intrinsics/", "interpreter/", "sim/ptx.h"):
        assert f"`{path}`" in CONTRIBUTING, path


@pytest.mark.proof
def test_it_is_emitted_and_shown(copy: Path) -> None:
    text = gemmgen(copy, "emit", "streamed.sched")
    assert FUNCTION.strip() in text
    assert re.search(r"gg_store_streaming\(&C\[", text.partition("__global__")[2])
    assert "store_streaming [C[" in gemmgen(copy, "show", "streamed.sched", "--stage", "lowered")


@pytest.mark.proof
def test_its_models_run_it(copy: Path) -> None:
    """The interpreter (C1), and the text on the CPU (C2)."""
    said = gemmgen(copy, "verify", "streamed.sched", "--no-prove", "--shape", "17x19x9")
    assert re.search(r"^ +C1 +passed", said, re.MULTILINE), said
    assert re.search(r"^ +C2 +passed", said, re.MULTILINE), said
