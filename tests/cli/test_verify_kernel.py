"""``gemmgen verify mine.cu``: an edited kernel is proved by the schedule that it states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import GOLDEN

from cli.running import EXAMPLES, gemmgen
from gemmgen.api.kernels import emit_cuda
from gemmgen.api.tools import verify
from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.proof.edited import HEADING, stated_schedule

NAIVE = EXAMPLES / "naive.sched"
SHAPE = ("--shape", "5x7x3")
GOLDENS = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.cu"))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.cu"
    path.write_text(emit_cuda(NAIVE), encoding="utf-8")
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.by_default("tma.cu", "batches/*", "fused.cu")
@pytest.mark.parametrize("name", GOLDENS)
def test_an_emitted_file_states_the_schedule_that_gives_it(name: str) -> None:
    text = (GOLDEN / name).read_text(encoding="utf-8")
    if HEADING not in text:
        pytest.skip("a whole program, or a header")
    assert compile_schedule(parse_schedule(stated_schedule(text, name))).text in text


@pytest.mark.proof
def test_a_kernel_is_proved_by_the_schedule_in_its_header(mine: Path) -> None:
    result = gemmgen("verify", mine, *SHAPE)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1] == "  no line differs from what is emitted"
    edit(mine, "k < K", "k < K - 1")
    result = gemmgen("verify", mine, *SHAPE)
    assert result.exit_code == 1
    assert (
        "\n-    for (int k = 0; k < K; ++k)\n+    for (int k = 0; k < K - 1; ++k)\n"
        in result.stdout
    )
    assert "C2  failed" in result.stdout


@pytest.mark.proof
def test_a_right_edit_passes_and_is_shown(mine: Path) -> None:
    edit(mine, "k < K;", "k + 1 <= K;")
    (found,) = json.loads(gemmgen("verify", mine, *SHAPE, "--json").stdout)
    assert found["file"] == str(mine) and "+    for (int k = 0; k + 1 <= K; ++k)" in found["edits"]
    assert found["edits"].startswith("--- as emitted\n") and "\x1b" not in found["edits"]
    layers = {each["layer"]: each["status"] for each in found["layers"]}
    assert (layers["C0"], layers["C1"], layers["C2"]) == ("passed", "passed", "passed")
    assert verify(mine, [(5, 7, 3)]).proved and verify(str(mine), [(5, 7, 3)]).proved
    (found,) = json.loads(gemmgen("verify", NAIVE, *SHAPE, "--json").stdout)
    assert found["edits"] is None


@pytest.mark.proof
def test_a_schedule_takes_the_place_of_that_in_the_header(mine: Path) -> None:
    edit(mine, HEADING, "// a schedule:")
    assert gemmgen("verify", mine, *SHAPE).exit_code == 2
    result = gemmgen("verify", mine, "--schedule", NAIVE, *SHAPE)
    assert result.exit_code == 0, result.output


def test_a_mistake_in_the_header_has_its_place(mine: Path) -> None:
    edit(mine, "//     gemm            C[m, n] =", "//     gemm            C[m, q] =")
    result = gemmgen("verify", mine)
    assert result.exit_code == 2 and result.stdout == ""
    line = mine.read_text(encoding="utf-8").splitlines().index(HEADING) + 2
    assert f"{mine}:{line}:29: error: q is only in C" in result.stderr
    with pytest.raises(ScheduleError):
        verify(mine)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (HEADING, "// a schedule:", f"has no line `{HEADING}`, after which"),
        ("// ---- end of kernel ----", "//", "lacks `// ---- end of kernel ----`"),
        ("#ifndef", "#include <cuda_fp16.h>\n#ifndef", " has `#include <cuda_fp16.h>`: the proof"),
    ],
)
def test_what_is_no_edited_kernel_is_refused(mine: Path, old: str, new: str, said: str) -> None:
    text = mine.read_text(encoding="utf-8")
    mine.write_text(text.replace(old, new), encoding="utf-8")
    result = gemmgen("verify", mine)
    assert result.exit_code == 2 and result.stdout == ""
    assert said in result.stderr and str(mine) in result.stderr
    assert "Traceback" not in result.stderr
    with pytest.raises(UsageError):
        verify(mine)


def test_whole_programs_and_other_types_are_refused(tmp_path: Path) -> None:
    for name, option in (("main.cu", ("--main",)), ("types.cu", ("--types", "cuda"))):
        path = tmp_path / name
        assert gemmgen("emit", EXAMPLES / "types/bf16.sched", *option, "-o", path).exit_code == 0
        result = gemmgen("verify", path)
        assert result.exit_code == 2 and "without --main and --types" in result.stderr


def test_names_that_make_no_pair(mine: Path) -> None:
    for files in ((mine, mine, NAIVE), (mine, NAIVE, NAIVE)):
        result = gemmgen("verify", *files)
        assert result.exit_code == 2 and "do not pair: pass one of each" in result.stderr
    result = gemmgen("verify", mine, "--text", mine)
    assert result.exit_code == 2 and "--text is the kernel of a schedule" in result.stderr
    result = gemmgen("verify", mine.with_name("none.cu"))
    assert result.exit_code == 2 and "none.cu: no such file" in result.stderr
    with pytest.raises(UsageError, match="text= is the kernel of a schedule"):
        verify(mine, text="x")
