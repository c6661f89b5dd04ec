"""``fmt``, ``help`` and ``example``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemmgen.schedule import examples

from .running import EXAMPLES, gemmgen

MESSY = "double_buffer  A B\n# the block's tile\ntile m=32   n=32 k=8\ncache_shared A B\n"
NEAT = """\
# the block's tile
tile            m=32 n=32 k=8
cache_shared    A B
double_buffer   A B
"""


def test_fmt_rewrites_files_in_place(tmp_path: Path):
    path = tmp_path / "x.sched"
    path.write_text(MESSY)
    path.chmod(0o640)
    result = gemmgen("fmt", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert path.read_text() == NEAT and path.stat().st_mode & 0o777 == 0o640
    assert gemmgen("fmt", path).stderr == ""


def test_fmt_check_shows_the_difference_and_writes_nothing(tmp_path: Path):
    path = tmp_path / "x.sched"
    path.write_text(MESSY)
    result = gemmgen("fmt", "--check", path)
    assert result.exit_code == 1 and "+tile            m=32 n=32 k=8\n" in result.stdout
    assert path.read_text() == MESSY


def test_fmt_writes_nothing_where_one_file_is_wrong(tmp_path: Path):
    right, wrong = tmp_path / "right.sched", tmp_path / "wrong.sched"
    right.write_text(MESSY)
    wrong.write_text("tile m=(\n")
    assert gemmgen("fmt", right, wrong).exit_code == 2
    assert right.read_text() == MESSY


def test_fmt_passes_standard_input_on():
    assert gemmgen("fmt", "-", input=MESSY).stdout == NEAT


def test_fmt_mends_line_ends(tmp_path: Path):
    path = tmp_path / "x.sched"
    path.write_bytes(NEAT.replace("\n", "\r\n").encode())
    assert gemmgen("fmt", "--check", path).exit_code == 1
    gemmgen("fmt", path)
    assert path.read_bytes() == NEAT.encode()


def test_help_lists_the_directives_in_ladder_order():
    text = gemmgen("help").stdout
    order = ["bind", "tile", "cache_shared", "vectorize", "double_buffer", "fuse_epilogue"]
    places = [text.index(f"\n  {name} ") for name in order]
    assert places == sorted(places)
    assert re.search(r"^  tile +split C over the grid", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["tile", "fuse_epilogue"])
def test_help_shows_a_directives_rewrite(name: str):
    text = gemmgen("help", name).stdout
    assert text.startswith(f"{name}: ") and f"\n==> {name} " in text and "\nwritten: " in text


def test_help_knows_statements_and_commands():
    assert "written:  assume N % 4 == 0" in gemmgen("help", "assume").stdout
    assert gemmgen("help", "emit").stdout.startswith("Usage: ")


def test_examples_are_listed_in_ladder_order():
    lines = gemmgen("example").stdout.splitlines()
    assert [line.split()[0] for line in lines][: len(examples.LADDER)] == list(examples.LADDER)
    message = dict(line.split(None, 1) for line in lines)
    assert message["naive"].startswith("Rung 0: a thread per element of C")


def test_an_example_is_printed_as_it_is(tmp_path: Path):
    text = (EXAMPLES / "fused.sched").read_text()
    assert gemmgen("example", "fused").stdout == text
    page = (EXAMPLES / "uses" / "attention.py").read_text()
    assert gemmgen("example", "uses/attention.py").stdout == page
    gemmgen("example", "fused.sched", "-o", tmp_path / "mine.sched")
    assert (tmp_path / "mine.sched").read_text() == text


def test_version_is_the_packages():
    import gemmgen as package

    assert package.__version__ in gemmgen("--version").stdout
