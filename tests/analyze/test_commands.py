"""gemmgen explain and gemmgen diff, as users call them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from chosen import with_every_word
from click.testing import CliRunner, Result

from gemmgen.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
VECTORIZED = EXAMPLES / "vectorized.sched"
TRANSPOSED = EXAMPLES / "transposed.sched"


def gemmgen(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


LADDER = [path.stem for path in sorted(EXAMPLES.glob("*.sched"))]
EXPLAINED = dict.fromkeys(("naive", "vectorized", "split_k", *with_every_word(LADDER)))


@pytest.mark.by_default("split_k")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", EXPLAINED)
def test_an_example_is_explained(name: str):
    """Those that have every word which an example of the first folder has."""
    path = EXAMPLES / f"{name}.sched"
    message = gemmgen("explain", path, "--no-next")
    assert message.exit_code == 0, message.output
    for title in ("elements, counted", "global memory", "resources", "roofline"):
        assert title in message.stdout
    assert not message.stderr


@pytest.mark.proof
def test_the_report_sets_counts_beside_formulas():
    message = gemmgen("explain", VECTORIZED, "--shape", "512x256x128").stdout
    line = next(line for line in message.splitlines() if "MNK(1/BM + 1/BN)" in line)
    assert line.count("262,144") == 2
    assert line.endswith("1.000")


@pytest.mark.usefixtures("estimated")
def test_the_report_has_a_schedules_own_letters(tmp_path: Path):
    path = tmp_path / "own.sched"
    path.write_text("gemm Y[b, i, j] = X[b, i, p] * W[p, j]\n")
    message = gemmgen("explain", path, "--shape", "i=64,j=32,p=16,b=3").stdout
    assert "i=64 j=32 p=16 b=3: Y is 64 x 32, 3 matrices, K = 16" in message
    assert "global reads of X and W" in message and "2*size_b*IJP" in message
    assert "global writes of Y" in message and "size_b*IJ " in message


@pytest.mark.usefixtures("estimated")
def test_json_has_the_same_counts():
    message = json.loads(gemmgen("explain", VECTORIZED, "--shape", "512x256x128", "--json").stdout)
    assert message["shape"] == {"rows": 512, "columns": 256, "contracted": 128}
    reads = {t["buffer"]: t["elements"] for t in message["traffic"] if not t["write"]}
    assert reads["A"] == 512 * 256 * 128 // 128
    assert sum(s["requests"] for s in message["sites"]) == sum(
        t["requests"] for t in message["traffic"]
    )
    assert message["roofline"]["binding"] in {
        bound["name"] for bound in message["roofline"]["bounds"]
    }


def test_a_map_shows_each_thread_in_its_bank():
    message = gemmgen("explain", TRANSPOSED, "--map", "A.shared").stdout
    assert "a 32-way bank conflict" in message
    assert "warp 0 of block 0 writes A_shared" in message
    assert "again (32)" in message


def test_a_map_shows_sectors():
    message = gemmgen("explain", EXAMPLES / "uncoalesced.sched", "--map", "A.global").stdout
    assert "32 sectors of 32 bytes" in message
    assert "A[31, 0]" in message


def test_a_map_of_something_else_names_what_there_is():
    message = gemmgen("explain", EXAMPLES / "naive.sched", "--map", "A.shared")
    assert message.exit_code == 2
    assert "this kernel has A.global, B.global, C.global" in message.stderr


@pytest.mark.proof
def test_pictures_are_written(tmp_path: Path):
    for more, titles in (
        ((), ["roofline at 4096 x 4096 x 4096", "issue slots: "]),
        (("--map", "A.shared"), ["writes A_shared", "reads A_shared"]),
        (("--map", "A.global"), ["warp 0 of block 0 reads A", "sectors of 32 bytes"]),
    ):
        out = tmp_path / "out.svg"
        message = gemmgen("explain", VECTORIZED, "--plot", out, *more)
        assert message.exit_code == 0, message.output
        text = out.read_text()
        assert ElementTree.fromstring(text).tag.endswith("}svg")
        assert all(title in text for title in titles)


def test_a_picture_is_an_svg(tmp_path: Path):
    message = gemmgen("explain", VECTORIZED, "--plot", tmp_path / "out.png")
    assert message.exit_code == 2 and not list(tmp_path.iterdir())
    assert "name a file that ends in .svg" in message.stderr and message.stderr.count("\n") == 1


def test_a_plot_may_not_replace_the_schedule(tmp_path: Path):
    path = tmp_path / "a.sched"
    path.write_text(TRANSPOSED.read_text())
    assert gemmgen("explain", path, "--plot", path).exit_code == 2
    assert path.read_text() == TRANSPOSED.read_text()


def test_a_wrong_schedule_is_a_located_error(tmp_path: Path):
    path = tmp_path / "a.sched"
    path.write_text("tile m=33 n=1\n")
    message = gemmgen("explain", path)
    assert message.exit_code == 2
    assert f"{path}:1:1: error:" in message.stderr and not message.stdout


@pytest.mark.usefixtures("estimated")
def test_diff_tells_statements_text_and_figures():
    message = gemmgen("diff", TRANSPOSED, EXAMPLES / "padded.sched").stdout
    assert re.search(r"^  pad +- +pad A by=1$", message, re.M)
    assert "+    __shared__ alignas(16) float A_shared[BK][BM + A_PAD];" in message
    line = next(line for line in message.splitlines() if "A_shared write: conflicts" in line)
    assert line.split()[-2:] == ["32-way", "none"]


@pytest.mark.proof
def test_diff_of_a_schedule_with_itself_finds_nothing():
    message = gemmgen("diff", TRANSPOSED, TRANSPOSED).stdout
    assert "the same" in message and "+++" not in message


@pytest.mark.usefixtures("estimated")
def test_diff_as_json():
    message = json.loads(gemmgen("diff", TRANSPOSED, VECTORIZED, "--json").stdout)
    changed = {change["name"]: change for change in message["statements"]}
    assert changed["register_block"]["before"] == "-"
    assert changed["tile"]["after"] == "tile m=128 n=128 k=8"
    assert message["text"].startswith("---")
    assert message["before"]["resources"]["threads"] == 1024


@pytest.mark.proof
def test_diff_has_the_accesses_of_c_with_and_without_fusion():
    blocked, fused = (EXAMPLES / f"{name}.sched" for name in ("register_blocked", "fused"))
    said = gemmgen("diff", blocked, fused, "--shape", "512", "--no-text").stdout
    line = next(line for line in said.splitlines() if "accesses of C, by elementwise" in line)
    assert line.endswith("524,288 reads, 786,432 writes (5.2 MB)")
    said = gemmgen("explain", fused, "--shape", "512").stdout
    assert "elementwise kernels (addition, relu) would add 524,288 reads and 524,288" in said
