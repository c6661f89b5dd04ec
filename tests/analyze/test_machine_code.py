"""``explain --sass`` and ``emit --format sass``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gemmgen.analyze.machine_code import annotated, classes
from gemmgen.cli import main
from gemmgen.gpu import compiler, sass, sass_loops
from gemmgen.gpu.register_banks import VOLTA

from .test_loop import LISTING, missing

VECTORIZED = Path(__file__).parents[2] / "examples/vectorized.sched"
needs_tool = pytest.mark.skipif(bool(missing()), reason=missing())


def gemmgen(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def body() -> sass.Code:
    text = LISTING.replace("R11.reuse, R8", "R11.reuse, R13")
    found = sass_loops.main_loop(sass.parse(text)["gemm"])
    assert found is not None
    return found


def test_each_class_has_its_share() -> None:
    found = classes(body(), "sm_90", "main loop")
    assert found.title == "machine code of the main loop, sm_90: 6 instructions"
    assert found.rows[0] == ("FFMA", "3", "50.0%")
    assert {row[0] for row in found.rows} == {"FFMA", "global reads", "integers", "branches"}
    reuse, banks = found.notes
    assert reuse == "r: 66.7% of the FFMA mark an operand .reuse, 33% of the operands"
    assert banks.startswith("!: 0 FFMA, 0.0%, fetch three sources from one of 2 register banks")


def test_lines_are_marked() -> None:
    """The second FFMA reads R9, R11 and R13; R9 was kept, unless its mark is left out."""
    lines = annotated(body(), VOLTA).splitlines()
    assert len(lines) == 6 and lines[1].startswith("   r 00020  FFMA R8, R9.reuse")
    assert lines[2].startswith("   r 00030  FFMA R8, R9, R11.reuse, R13")
    assert lines[0].endswith("  global reads") and "@P1 BRA" in lines[-1]
    kept = body()
    lost = tuple(
        sass.SassInstruction(i.address, i.opcode, i.operands.replace("R9.reuse", "R9"), i.guard)
        for i in kept
    )
    assert annotated(lost, VOLTA).splitlines()[2].startswith("  !r 00030")


def test_code_without_multiply_adds_of_single_registers_says_so() -> None:
    code = (sass.SassInstruction(0, "DFMA", "R0, R2, R4, R6"),)
    assert "there is none" in classes(code, "sm_90", "main loop").notes[0]


@pytest.mark.proof
@needs_tool
def test_explain_prints_the_main_loop() -> None:
    said = gemmgen("explain", VECTORIZED, "--sass")
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith("machine code of the main loop, sm_90: ")
    assert re.search(r"^  FFMA +512 +8\d\.\d%$", said.stdout, re.M)
    lines = [line for line in said.stdout.splitlines() if re.search(r"  FFMA$", line)]
    assert len(lines) == 512 and "roofline" not in said.stdout
    elsewhere = gemmgen("explain", VECTORIZED, "--sass", "--gpu", "A100").stdout
    assert elsewhere.startswith("machine code of the main loop, sm_80: ")


@pytest.mark.proof
@needs_tool
def test_emit_prints_the_disassembly() -> None:
    said = gemmgen("emit", VECTORIZED, "--format", "sass")
    assert said.exit_code == 0 and ".text.gemm:" in said.stdout
    assert sass.count(sass.parse(said.stdout)["gemm"], "FFMA") >= 512


@pytest.mark.skipif(bool(compiler.available()), reason=str(compiler.available()))
@pytest.mark.parametrize("how", [("explain", "--sass"), ("emit", "--format", "sass")])
def test_without_the_tool_one_line_says_what_to_install(
    how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sass.shutil, "which", lambda *_, **__: None)
    said = gemmgen(how[0], VECTORIZED, *how[1:])
    assert (said.exit_code, said.stdout) == (3, "")
    assert "pip install nvidia-cuda-nvdisasm" in said.stderr and said.stderr.count("\n") == 1


def test_a_listing_is_no_figures_for_scripts() -> None:
    assert gemmgen("explain", VECTORIZED, "--sass", "--json").exit_code == 2
    assert gemmgen("explain", VECTORIZED, "--sass", "--map", "A.shared").exit_code == 2
