"""``benchmarks/tensor_cores.py``: its cases are schedules, its lines what ``bench`` gives."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gemmgen.base.source import Source
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.setup import Setup
from gemmgen.pipeline import Emitted, compile_source

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import tensor_cases  # noqa: E402
import tensor_cores  # noqa: E402
import tensor_shares  # noqa: E402

GROUPS = tensor_cases.read()
TEXTS = sorted({(name, text) for group in GROUPS for name, text in group.texts})


def emitted(name: str, text: str) -> Emitted:
    return compile_source(Source(text, name))


@pytest.mark.proof
@pytest.mark.parametrize(("name", "text"), TEXTS)
def test_every_case_is_a_schedule(name: str, text: str) -> None:
    assert emitted(name, text).text


@pytest.mark.proof
def test_the_groups_are_the_storage_orders_of_the_cases() -> None:
    first, second = GROUPS[:2]
    assert (first.what, first.shapes[0]) == ("bf16, 1024", (1024, 1024, 1024))
    assert (first.product, second.product) == ("A[m, k] * B[n, k]", "A[m, k] * B[k, n]")
    for group in GROUPS:
        for name, text in group.texts:
            tensors = {p.name: p for p in emitted(name, text).interface.tensors}
            assert group.types == " ".join(tensors[x].dtype for x in "ABC")
            assert f"gemm            C[m, n] = {group.product}" in text or group.product in text


def test_statements_are_replaced_added_and_left_out() -> None:
    text = "# Why.\ntile m=1\npersistent\ndouble_buffer A\ndouble_buffer C\nraster group=8\n"
    statements: dict[str, tensor_cases.Statements] = {
        "tile": "m=2",
        "persistent": False,
        "double_buffer": "A B stages=4",
        "l2": ["A evict=last", "B evict=first"],
        "overlap_launch": "",
    }
    assert tensor_cases.changed(text, statements).splitlines() == [
        "tile m=2",
        "double_buffer A B stages=4",
        "raster group=8",
        "l2 A evict=last",
        "l2 B evict=first",
        "overlap_launch",
    ]


def row(name: str, ms: float | None, share: float | None = None, note: str = "") -> BenchRow:
    shape = (("M", 4096), ("N", 4096), ("K", 4096))
    times = (ms, ms, ms, None if ms is None else 137.4 / ms)
    return BenchRow(
        *(name, shape, *times, share, None, 0.1, not note, "NVIDIA H200", note),
        setup=Setup(1755, "580", "13.0", "13.1.0"),
        of_best=share,
        power=650.0,
        sm_clock=1600,
    )


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Any]]:
    """Shapes that are asked for; each has a row of both rivals, a kernel and a refused one."""
    asked: list[Sequence[Any]] = []
    found = [
        row("cuBLAS A[m,k] B[n,k] C[m,n] bf16", 0.18, 1.0),
        row("cublasLt A[m,k] B[n,k] C[m,n] bf16", 0.175, 1.03),
        row("hopper/wgmma", 0.19, 0.95),
        row("wgmma 64x128", None, note="N is not a multiple of 8"),
    ]

    def bench(entries: Sequence[Any], shapes: Sequence[Any], **keywords: Any) -> list[BenchRow]:
        assert keywords["checked_rows"] and len({entry[0] for entry in entries}) == len(entries)
        asked.append(shapes)
        if shapes[0]["M"] == 2048:
            raise MemoryError("out of memory")
        return found

    pool = SimpleNamespace(free_all_blocks=lambda: None)
    runtime = SimpleNamespace(getDevice=lambda: 0)
    stub = SimpleNamespace(
        get_default_memory_pool=lambda: pool, cuda=SimpleNamespace(runtime=runtime)
    )
    monkeypatch.setattr(tensor_cores, "bench", bench)
    monkeypatch.setattr(tensor_cores, "Entry", SimpleNamespace(of=lambda *all_of: all_of))
    monkeypatch.setattr(tensor_cores.device, "cupy", lambda: stub)
    monkeypatch.setattr(tensor_cores.device, "capability", lambda _: (9, 0))
    monkeypatch.setattr(tensor_cores.store, "stored", lambda *_: None)
    return asked


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tensor_cores.py", "--threads", "2", *arguments])
    return tensor_cores.main()


def test_a_run_writes_lines_and_a_table(
    gpu: list[Sequence[Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "rows.json"
    assert run(monkeypatch, "--only", "promoted", "--json", str(data)) == 0
    lines = tensor_shares.read(data)
    assert [line.schedule for line in lines[:3]] == ["cuBLAS", "cublasLt", "hopper/wgmma"]
    assert {line.what for line in lines} == {"bf16, promoted", "fp8, promoted"}
    line = lines[2]
    assert (line.rival, line.share, line.clock, line.sm_clock) == ("cuBLAS", 0.95, 1755, 1600)
    said = capsys.readouterr().out
    assert "| bf16, promoted, A[m, k] B[n, k] | 4096 | hopper/wgmma | 95.0% |" in said
    assert "refused: bf16, promoted, 4096x4096x4096, wgmma 64x128: N is not a multiple" in said
    assert len(gpu) == 4 and len(json.loads(data.read_text())) == 12


def test_a_shape_that_fails_is_reported_and_the_next_one_runs(
    gpu: list[Sequence[Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "--only", "i8") == 0
    said = capsys.readouterr().out
    assert "not timed: i8, 2048x2048x2048: MemoryError: out of memory" in said
    assert len(gpu) == 3


def test_after_the_time_no_shape_begins(
    gpu: list[Sequence[Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "--only", "f64", "--seconds", "0") == 0
    assert not gpu and "out of time: 4 shapes are left out" in capsys.readouterr().out
