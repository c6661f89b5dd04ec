"""The tables against cuBLAS are generated from the data file, on two pages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gemmgen_docs import cublas, measured, tma_shares
from gemmgen_docs.cublas import shares

ROOT = Path(__file__).parents[2]
LINES = shares.read()
LINE = shares.Line("large", "large_km_kn", "M=2048 N=2048 K=2048", 2.0, 0.5, 0.9, True, "GPU", "")


def test_the_page_has_what_the_data_file_gives() -> None:
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    block = shares.page_block(LINES)
    assert block in text, "run: python benchmarks/against_cublas.py --page"
    assert text.count(shares.BEGIN) == text.count(shares.END) == 1


def test_the_page_has_the_shares_by_tma() -> None:
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    assert tma_shares.page_block() in text, "run: PYTHONPATH=docs python -m gemmgen_docs.tma_shares"
    for row in tma_shares.read():
        assert (ROOT / "examples" / f"{row.schedule}.sched").exists()


@pytest.mark.proof
def test_the_command_writes_that_block(tmp_path: Path) -> None:
    """In a copy of the repository, as far as the command needs it."""
    for folder in ("benchmarks", "examples", "docs/data", "gemmgen"):
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        if folder == "benchmarks":
            (tmp_path / folder).mkdir()
            for path in (ROOT / folder).glob("*.*"):
                (tmp_path / folder / path.name).write_text(path.read_text(encoding="utf-8"))
        else:
            (tmp_path / folder).symlink_to(ROOT / folder)
    page = tmp_path / "docs/performance.md"
    page.write_text(f"before\n{shares.BEGIN}\nold\n{shares.END}\nafter\n")
    command = [sys.executable, str(tmp_path / "benchmarks" / "against_cublas.py"), "--page"]
    subprocess.run(command, check=True, timeout=60)
    assert page.read_text(encoding="utf-8") == f"before\n{shares.page_block(LINES)}\nafter\n"


def test_a_text_without_marks_is_refused() -> None:
    for text in ("none", f"{shares.BEGIN} alone", f"{shares.END} alone"):
        with pytest.raises(SystemExit, match="no marks for the table"):
            shares.replaced(text, "block")


def test_every_line_is_shown_once() -> None:
    grid = shares.grid(LINES)
    shown = [line for row in grid.rows for line in row if line] + list(shares.others(LINES))
    assert sorted(map(repr, shown)) == sorted(map(repr, LINES))
    assert len(grid.orders) == len(set(grid.orders))
    for row in grid.rows:
        for order, line in zip(grid.orders, row, strict=True):
            assert line is None or line.storage() == order


def test_speeds_are_those_of_the_times() -> None:
    assert LINE.tflops() == pytest.approx(2 * 2048**3 / 2e-3 / 1e12)
    assert LINE.rival() == pytest.approx(2 * LINE.tflops())
    batch = replace(LINE, shape="size_b=64 M=256 N=256 K=256")
    assert batch.tflops() == pytest.approx(2 * 64 * 256**3 / 2e-3 / 1e12)
    assert (LINE.spelled(), batch.spelled()) == ("2048", "64 x 256 x 256 x 256")


def test_a_short_share_and_a_wrong_result_are_marked() -> None:
    assert LINE.percent() == "50.0%†"
    assert replace(LINE, share=0.9).percent() == "90.0%"
    assert replace(LINE, checked=False).percent() == "wrong"


def test_what_is_short_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "read", lambda: (LINE,))
    assert "2048" in cublas.short() and "50.0% of a target of 90%" in cublas.short()
    monkeypatch.setattr(shares, "read", lambda: (replace(LINE, share=1.0),))
    assert cublas.short() == "Nothing is below its target."


def test_the_page_shows_every_schedule_that_was_measured() -> None:
    listed, parts = cublas.listed(), cublas.parts()
    for name in {line.schedule for line in LINES}:
        assert f"### {name}\n" in listed and f"examples/best/{name}.sched" in listed
        assert f"[{name}](../cublas.md#{name})" in parts


def test_versions_stand_beside_the_gpu_where_the_file_has_them() -> None:
    new = replace(LINE, clock=1980, driver="580.95.05", cuda="13.0", cublas="13.1.0", date="day")
    said = "SM clock 1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0"
    assert shares.about([new]) == f"On an GPU ({said}), day"
    assert shares.about([LINE]) == "On an GPU"
    assert measured.on([{"gpu": "GPU", "clock": 1980}]) == "GPU (SM clock 1980 MHz)"
    assert measured.on([{"gpu": "GPU"}]) == "GPU"
