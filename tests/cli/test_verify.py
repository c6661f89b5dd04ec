"""``gemmgen verify`` and ``show``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemmgen import emit_cuda, verify
from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source
from gemmgen.expand import expand
from gemmgen.ir.expanded import ExpandedProgram
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import parse_ir
from gemmgen.language import parse_schedule
from gemmgen.pipeline import make_concrete, rewrite
from gemmgen.proof import compiled, gpu
from gemmgen.proof.layers import ORDER
from gemmgen.proof.outcome import failed, passed, skipped

from .running import EXAMPLES, gemmgen

NAIVE = EXAMPLES / "naive.sched"


@pytest.mark.proof
def test_verify_prints_a_line_per_layer():
    result = gemmgen("verify", NAIVE, "--shape", "5x7x3")
    assert result.exit_code == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == str(NAIVE) and len(lines) == 1 + len(ORDER)
    assert lines[3].startswith("  C2  passed   ")


@pytest.mark.parametrize(
    ("outcome", "options", "code"),
    [
        (passed("G2", "7 cases"), ["--require", "G2"], 0),
        (skipped("G2", "no GPU"), [], 0),
        (skipped("G2", "no GPU"), ["--require", "G2"], 3),
        (failed("G2", "C[0, 0]"), [], 1),
    ],
)
def test_exit_codes(outcome, options, code, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "check", lambda subject: outcome)
    monkeypatch.setattr(compiled, "check", lambda subject: passed("C3", "not compiled here"))
    call = "verify", NAIVE, "--shape", "2x3x5", "--no-prove"
    assert gemmgen(*call, *options).exit_code == code


def test_json_holds_figures_and_reasons(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "check", lambda subject: skipped("G2", "no GPU"))
    result = gemmgen("verify", NAIVE, "--shape", "2x3x5", "--json")
    (found,) = json.loads(result.stdout)
    layers = {layer["layer"]: layer for layer in found["layers"]}
    assert found["file"] == str(NAIVE) and list(layers) == list(ORDER)
    assert layers["G2"]["reason"] == "no GPU" and layers["C1"]["status"] == "passed"


def test_a_mistake_in_one_file_comes_before_all_work():
    result = gemmgen("verify", NAIVE, "-", input="tile m=\n")
    assert (result.exit_code, result.stdout) == (2, "") and "<stdin>:1:" in result.stderr


def test_show_prints_the_program_after_each_pass():
    text = gemmgen("show", EXAMPLES / "tiled.sched").stdout
    assert [line for line in text.splitlines() if line.startswith("==")] == [
        "== gemm",
        "== tile",
        "== cache_shared",
    ]
    one = gemmgen("show", EXAMPLES / "tiled.sched", "--pass", "tile").stdout
    assert one in text and one.startswith("== tile\nprogram sm_80\n")


STAGES = {"declared": Program, "expanded": ExpandedProgram, "lowered": LoweredProgram}


@pytest.mark.parametrize("stage", STAGES)
def test_a_shown_stage_reads_back(stage: str):
    path = EXAMPLES / "vectorized.sched"
    *_, before, last = rewrite(parse_schedule(Source(path.read_text(encoding="utf-8"))))
    for step, chosen in ((last, ()), (before, ("--pass", before.directive))):
        program = parse_ir(gemmgen("show", path, "--stage", stage, *chosen).stdout, STAGES[stage])
        levels = {"declared": step.program, "expanded": expand(step.program)}
        assert program == levels.get(stage, make_concrete(step.program))


def test_show_diff_is_of_the_stage():
    path = EXAMPLES / "padded.sched"
    text = gemmgen("show", path, "--stage", "lowered", "--pass", "pad", "--diff").stdout
    changed = [line for line in text.splitlines()[2:] if line[0] in "+-"]
    assert text.startswith("--- cache_shared\n+++ pad\n")
    assert any(
        line.startswith("+    shared_array") and "sizes=[32, 33]" in line for line in changed
    )


def test_show_diff_prints_what_a_pass_changed():
    text = gemmgen("show", EXAMPLES / "padded.sched", "--pass", "pad", "--diff").stdout
    assert text.startswith("--- cache_shared\n+++ pad\n")
    changed = [line for line in text.splitlines()[2:] if line[0] in "+-"]
    assert len(changed) == 2 and " pad=1" in changed[1]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The emitted file of a schedule, to be edited."""
    path = tmp_path / "mine.cu"
    assert gemmgen("emit", NAIVE, "-o", path).exit_code == 0
    return path


@pytest.mark.proof
def test_an_edited_text_is_proved_in_place_of_the_emitted_one(written: Path):
    line = ("verify", NAIVE, "--shape", "5x7x3", "--text", written)
    assert gemmgen(*line).exit_code == 0
    text = written.read_text(encoding="utf-8")
    assert text.count("k < K") == 1
    written.write_text(text.replace("k < K", "k < K - 1"), encoding="utf-8")
    result = gemmgen(*line)
    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines() if line.startswith("  ")]
    layers = {line[0]: line[1] for line in lines if line[0] in ORDER}
    assert (layers["C0"], layers["C1"], layers["C2"]) == ("passed", "passed", "failed")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "lacks `// ---- kernel ----`"),
        (b"// ---- kernel ----\n", "lacks `// ---- end of kernel ----`"),
        (b"// ---- kernel ----\n// ---- end of kernel ----\n", "lacks `launch_gemm(`"),
        (b"\xff", "is not a text in UTF-8: byte 0 is 0xff"),
    ],
)
def test_a_text_that_is_no_copy_of_the_emitted_one_is_a_mistake(written: Path, data, said: str):
    written.write_bytes(data)
    result = gemmgen("verify", NAIVE, "--text", written)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{written} {said}" in result.stderr and "Traceback" not in result.stderr


def test_a_text_is_of_one_file(written: Path):
    result = gemmgen("verify", NAIVE, NAIVE, "--text", written)
    assert (result.exit_code, result.stdout) == (
        2,
        "",
    ) and "is the kernel of one FILE" in result.stderr
    result = gemmgen("verify", NAIVE, "--text", written.with_name("none.cu"))
    assert result.exit_code == 2 and "none.cu: no such file" in result.stderr


@pytest.mark.proof
def test_python_takes_an_edited_text():
    text = emit_cuda(NAIVE)
    assert verify(NAIVE, [(5, 7, 3)], text=text).proved
    proof = verify(NAIVE, [(5, 7, 3)], text=text.replace("k < K", "k < K - 1"))
    assert [o.layer for o in proof.outcomes if o.status == "failed"] == ["C2"]
    for wrong in (7, "", "int main() {}"):
        with pytest.raises(UsageError, match=r"text"):
            verify(NAIVE, text=wrong)
