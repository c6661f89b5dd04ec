"""``gemmgen ladder --plot``: a chart of rows, of this run or of an earlier one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gemmgen.cli.ladder_plot import plotted, read_rows
from gemmgen.draw.measured import Speed, chart
from gemmgen.draw.plots import COLORS, MARKERS
from gemmgen.schedule.examples import LADDER
from tests.cli.running import ROOT, gemmgen

ROWS = ROOT / "docs" / "data" / "ladder.json"


@pytest.mark.proof
def test_an_earlier_run_is_drawn(tmp_path: Path) -> None:
    out = tmp_path / "out.svg"
    result = gemmgen("ladder", "--from", ROWS, "--plot", out)
    assert (result.exit_code, result.output) == (0, "")
    found = ElementTree.fromstring(out.read_text())
    words = {text for e in found.iter() if e.tag.endswith("}text") for text in e.itertext()}
    names = {str(row["name"]) for row in read_rows(str(ROWS))}
    assert {name for name in names if not name.startswith("cuBLAS")} | {"cuBLAS"} <= words
    assert {"TFLOP/s", "% of cuBLAS"} <= words


def test_rungs_are_in_the_order_of_the_ladder() -> None:
    speeds, _ = plotted(read_rows(str(ROWS))).plot
    assert [series.name for series in speeds.series] == [*LADDER, "cuBLAS"]


def test_lines_have_the_numbers_of_the_rows() -> None:
    speeds = [Speed("cuBLAS", "64", 40.0, 1.0), Speed("a", "64", 10.0, 0.25)]
    speeds += [Speed("cuBLAS", "128", 50.0, 1.0), Speed("a", "128", 45.0, 0.9)]
    speeds += [Speed("b", "128", 5.0, 0.1)]
    drawing = chart(speeds, "Measured nowhere")
    above, below = ({s.name: s for s in axes.series} for axes in drawing.plot)
    assert above["a"].points == ((0.0, 10.0), (1.0, 45.0)) and above["b"].points == ((1.0, 5.0),)
    assert below["a"].points == ((0.0, 25.0), (1.0, 90.0))
    assert above["cuBLAS"].style == "reference"
    assert drawing.description == (
        "a at 128: 45.0 TFLOP/s, 90.0% of cuBLAS. b at 128: 5.0 TFLOP/s, 10.0% of cuBLAS. "
        "Measured nowhere."
    )


def test_lines_are_distinguished_without_color(tmp_path: Path) -> None:
    """Of the ladder's ten lines no two have the same marker and dashes."""
    styles = [(MARKERS[n % len(MARKERS)], n // len(COLORS)) for n in range(10)]
    assert len(set(styles)) == 10
    assert len(set(COLORS)) == len(COLORS) and len(set(MARKERS)) == len(MARKERS)


def test_without_matplotlib_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = gemmgen("ladder", "--from", ROWS, "--plot", tmp_path / "out.svg")
    assert result.exit_code == 2 and not (tmp_path / "out.svg").exists()
    assert "pip install '.[plot]'" in result.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--from", str(ROWS)], "name a file with --plot OUT.svg"),
        (["--plot", "x.png"], "name a file that ends in .svg"),
        (["--plot", "x.svg", "--counts"], "--counts times nothing"),
        (["--from", str(ROWS), "--plot", "x.svg", "--json"], "use it with --plot only"),
        (["--from", str(ROWS), "--plot", "x.svg", "naive"], "use it with --plot only"),
        (["--from", "missing.json", "--plot", "x.svg"], "missing.json: no such file"),
    ],
)
def test_mistakes_are_one_message(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = gemmgen("ladder", *arguments)
    assert result.exit_code == 2 and not result.stdout and not list(tmp_path.iterdir())
    assert message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "rows.json:1:2: not JSON"),
        ("[]", "rows.json holds no rows"),
        ('[{"x": 1}]', "rows.json holds no rows"),
        ('[{"name": "a", "error": "no"}]', "none of the rows has a time"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(text)
    result = gemmgen("ladder", "--from", tmp_path / "rows.json", "--plot", tmp_path / "x.svg")
    assert result.exit_code == 2 and message in result.stderr
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.proof
def test_a_wrong_result_is_not_drawn(tmp_path: Path) -> None:
    rows = [row for row in read_rows(str(ROWS)) if row["shape"]["M"] == 1024]
    for row in rows:
        row["checked"] = row["name"] != "naive"
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    out = tmp_path / "out.svg"
    assert gemmgen("ladder", "--from", tmp_path / "rows.json", "--plot", out).exit_code == 0
    text = out.read_text()
    assert "naive at 1024" not in text and "vectorized at 1024" in text
