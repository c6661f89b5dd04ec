"""The table of tensor cores: generated from its data file, and absent without one."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from gemmgen_docs import cublas
from gemmgen_docs.cublas import shares, tensor_shares

ROOT = Path(__file__).parents[2]
LINE = tensor_shares.Line(
    what="bf16",
    schedule="hopper/wgmma",
    types="bf16 bf16 bf16",
    product="A[m, k] * B[n, k]",
    shape=(4096, 4096, 4096),
    ms=0.18,
    tflops=763.6,
    rival="cuBLAS",
    share=0.995,
    of_best=0.98,
    power=689.6,
    sm_clock=1605,
    checked=True,
    note="",
    gpu="NVIDIA H200",
    date="2026-11-24",
    clock=1980,
    driver="580",
)
RIVAL = replace(LINE, schedule="cublasLt", ms=0.17, share=1.01, of_best=1.0)


def test_the_page_has_what_the_data_file_gives() -> None:
    text = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    block = tensor_shares.page_block(tensor_shares.measured())
    assert block in text, f"run: {tensor_shares.COMMAND} --page"
    assert all(text.count(mark) == 1 for mark in tensor_shares.MARKS)


def test_without_data_there_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tensor_shares.read(tmp_path / "none.json") == ()
    assert tensor_shares.page_block(()) == "<!-- tensor_cores -->\n<!-- /tensor_cores -->"
    monkeypatch.setattr(tensor_shares, "measured", lambda: ())
    assert cublas.tensor_cores() == ""


def test_with_data_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "tensor_cores.json"
    data.write_text(json.dumps([asdict(LINE), asdict(RIVAL)]))
    lines = tensor_shares.read(data)
    assert lines == (LINE, RIVAL)
    block = tensor_shares.page_block(lines)
    row = "| bf16, A[m, k] B[n, k] | 4096 | hopper/wgmma | 99.5% | 98.0% | 763.6 | 690 |"
    assert row in block and "cublasLt |" not in block
    assert "On an NVIDIA H200 (SM clock 1980 MHz, driver 580), 2026-11-24, all results" in block
    monkeypatch.setattr(tensor_shares, "read", lambda: lines)
    assert row in cublas.tensor_cores() and cublas.tensor_cores().startswith("## ")
    text = "before\n" + tensor_shares.page_block(()) + "\nafter\n"
    assert shares.replaced(text, block, tensor_shares.MARKS) == f"before\n{block}\nafter\n"
    with pytest.raises(SystemExit, match="<!-- tensor_cores -->"):
        shares.replaced("none", block, tensor_shares.MARKS)


def test_the_fastest_right_schedule_is_shown() -> None:
    slow, wrong = replace(LINE, schedule="b", ms=0.2), replace(LINE, checked=False, ms=0.1)
    other = replace(LINE, shape=(16, 8192, 8192), ms=9.0)
    assert tensor_shares.best([slow, wrong, LINE, RIVAL, other]) == (LINE, other)
    assert tensor_shares.best([wrong]) == (wrong,) and "wrong" in wrong.cells()
    assert "all results checked" not in tensor_shares.note([wrong])
    assert other.spelled() == "16 x 8192 x 8192"


def test_a_share_of_cublaslt_alone_is_none_of_cublas() -> None:
    line = replace(LINE, rival="cublasLt", share=0.9, of_best=0.9, power=None)
    assert line.cells()[3:] == ("", "90.0%", "763.6", "")
