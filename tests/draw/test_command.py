"""``gemmgen draw``: where a drawing goes, in which format, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import EXAMPLES, gemmgen

TILED = str(EXAMPLES / "tiled.sched")


def test_text_is_printed_and_svg_is_asked_for() -> None:
    assert gemmgen("draw", "tiled").stdout.startswith("gemm: the tiles of a block\n")
    assert gemmgen("draw", "tiled", "--format", "svg").stdout.startswith("<svg ")


@pytest.mark.parametrize("suffix, start", [("svg", "<svg "), ("txt", "gemm: ")])
def test_a_files_suffix_is_its_format(suffix: str, start: str, tmp_path: Path) -> None:
    file = tmp_path / f"out.{suffix}"
    for _ in range(2):  # an existing file is replaced, also if an example is given by its name
        result = gemmgen("draw", "tiled", "-o", file)
        assert (result.exit_code, result.output) == (0, "")
        assert file.read_text().startswith(start)


def test_the_format_is_chosen_for_any_file(tmp_path: Path) -> None:
    assert gemmgen("draw", TILED, "-o", tmp_path / "x", "--format", "svg").exit_code == 0
    assert (tmp_path / "x").read_text().startswith("<svg ")


@pytest.mark.parametrize(
    "options, message",
    [
        (["--what", "cats"], "'cats' is not "),
        (["--shape", "4x4"], "a shape is MxNxK"),
        (["--shape", "64,q=4"], "there is no letter q"),
        (["--shape", "0"], "extents of at least 1"),
        (["--gpu", "Voodoo"], "gpu='Voodoo': there are H200, H100,"),
        (["-o", "x.png"], "x.png: a drawing's file ends in .svg or .txt, or give --format"),
        (["-o", "missing/x.svg"], "x.svg can't be written: there is no folder"),
        (["-o", TILED, "--format", "svg"], "is the schedule itself"),
        (["--set", "tile.q=3"], "tile.q"),
    ],
)
def test_mistakes_are_one_message(options: list[str], message: str) -> None:
    result = gemmgen("draw", TILED, *options)
    assert result.exit_code == 2 and not result.stdout
    assert message in result.stderr


def test_a_shape_that_the_kernel_does_not_take_is_refused() -> None:
    result = gemmgen("draw", "best/vector", "--shape", "1x100x512")
    assert result.exit_code == 2 and "it requires" in result.stderr


@pytest.mark.proof
def test_other_commands_import_no_svg() -> None:
    code = """
import sys
from gemmgen.cli import main
for words in (["--help"], ["emit", "tiled"], ["draw", "--help"], ["draw", "tiled"]):
    main(words, standalone_mode=False)
    print(words, "svg" in sys.modules, file=sys.stderr)
main(["draw", "tiled", "--format", "svg"], standalone_mode=False)
print("svg" in sys.modules, file=sys.stderr)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *others, last = run.stderr.splitlines()
    assert len(others) == 4 and all(line.endswith("False") for line in others) and last == "True"
