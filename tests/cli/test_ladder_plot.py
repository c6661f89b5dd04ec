"""``gemmgen ladder --plot``: a chart of rows, of this run or of an earlier one."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gemmgen.cli.ladder_plot import read_rows
from gemmgen.draw.marks import Cell, Label, Stroke
from gemmgen.draw.measured import Speed, chart
from tests.cli.running import ROOT, gemmgen

ROWS = ROOT / "docs" / "data" / "ladder.json"


def test_an_earlier_run_is_drawn(tmp_path: Path) -> None:
    out = tmp_path / "out.svg"
    result = gemmgen("ladder", "--from", ROWS, "--plot", out)
    assert (result.exit_code, result.output) == (0, "")
    found = ElementTree.fromstring(out.read_text())
    told = {e.text for e in found.iter() if e.tag.endswith("}title")}
    timed = [row for row in read_rows(str(ROWS)) if row["tflops"] is not None]
    for row in timed:
        name = "cuBLAS" if row["name"].startswith("cuBLAS") else row["name"]
        at = f"{name} at {row['shape']['M']}"
        assert f"{at}: {row['tflops']:.1f} TFLOP/s" in told
        if name != "cuBLAS":
            assert f"{at}: {row['share']:.1%} of cuBLAS" in told


def test_bars_and_points_are_as_high_as_their_numbers() -> None:
    """The axes' numbers give the scales; a bar that is planted too high is found."""
    speeds = [Speed("cuBLAS", "64", 40.0, 1.0), Speed("a", "64", 10.0, 0.25)]
    speeds += [Speed("cuBLAS", "128", 50.0, 1.0), Speed("a", "128", 45.0, 0.9)]
    drawing = chart(speeds, "Measured nowhere")
    for speed in speeds:
        place = f"{speed.name} at {speed.size}: "
        (point,) = (c for c in drawing.cells if c.about == f"{place}{speed.tflops:.1f} TFLOP/s")
        assert isclose(value(drawing.marks, 0, point.y + 4), speed.tflops, abs_tol=0.01)
        for bar in drawing.cells:
            if speed.share and bar.about == f"{place}{speed.share:.1%} of cuBLAS":
                assert isclose(value(drawing.marks, 1, bar.y), 100 * speed.share, abs_tol=0.01)
                assert not isclose(
                    value(drawing.marks, 1, bar.y - 5), 100 * speed.share, abs_tol=0.01
                )
    assert drawing.description == "a at 128: 45.0 TFLOP/s, 90.0% of cuBLAS. Measured nowhere."


def value(marks: tuple[Cell | Label | Stroke, ...], axis: int, y: float) -> float:
    """What ``y`` is on the first or the second axis."""
    numbers = [
        (float(m.text), m.y)
        for m in marks
        if isinstance(m, Label) and m.anchor == "end" and m.size == "small"
    ]
    second = next(at for at in range(1, len(numbers)) if numbers[at][0] == 0)
    ticks = numbers[second:] if axis else numbers[:second]
    (low, bottom), (high, top) = ticks[0], ticks[-1]
    return low + (bottom - y) / (bottom - top) * (high - low)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--from", str(ROWS)], "name a file with --plot OUT.svg"),
        (["--plot", "x.png"], "name a file that ends in .svg"),
        (["--plot", "x.svg", "--counts"], "--counts times nothing"),
        (["--from", str(ROWS), "--plot", "x.svg", "--json"], "goes with --plot alone"),
        (["--from", str(ROWS), "--plot", "x.svg", "naive"], "goes with --plot alone"),
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


def test_a_wrong_result_is_not_drawn(tmp_path: Path) -> None:
    rows = [row for row in read_rows(str(ROWS)) if row["shape"]["M"] == 1024]
    for row in rows:
        row["checked"] = row["name"] != "naive"
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    out = tmp_path / "out.svg"
    assert gemmgen("ladder", "--from", tmp_path / "rows.json", "--plot", out).exit_code == 0
    text = out.read_text()
    assert "naive at 1024" not in text and "vectorized at 1024" in text
