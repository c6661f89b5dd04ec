"""A choice outlives its process, and not what it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.base import caches, installation
from gemmgen.base.source import Source
from gemmgen.calling.arguments import View, contiguous_strides
from gemmgen.explore.results import store_path
from gemmgen.explore.suggest import choose as choosing
from gemmgen.gpu.gpus import GPUS, Gpu
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted
from gemmgen.schedule.formatting import format_schedule
from gemmgen.torch import siblings
from gemmgen.torch.suggested import suggested, suggestion

PROBLEM = parse_schedule(Source("gemm C[m, n] = A[m, k] * B[n, k]\ndtype bf16\ntarget sm_90a\n"))
SHAPE = {"m": 1000, "n": 2048, "k": 768}


@pytest.fixture(autouse=True)
def private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield
    siblings.compiled.cache_clear()


def views(pitch: int = 768, **shape: int) -> dict[str, View]:
    m, n, k = shape.values()
    a = View(0, (m, k), (pitch, 1), "bfloat16")
    b, c = (View(0, x, contiguous_strides(x), "bfloat16") for x in ((n, k), (m, n)))
    return {"A": a, "B": b, "C": c}


def found(pitch: int = 768, gpu: Gpu = GPUS["H200"], fast: bool = False) -> Emitted:
    emitted = suggested(PROBLEM, SHAPE, views(pitch, **SHAPE), gpu, fast=fast)
    assert emitted is not None
    return emitted


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was ranked."""
    requests: list[object] = []
    real = choosing.choose

    def counted(request: choosing.Request) -> choosing.Suggestion:
        requests.append(request)
        return real(request)

    monkeypatch.setattr(choosing, "choose", counted)
    return requests


def test_a_kept_choice_is_the_same_kernel_and_is_not_ranked_again(count: list[object]) -> None:
    first = found()
    assert len(count) == 1
    siblings.compiled.cache_clear()
    again = found()
    assert len(count) == 1
    assert again.text == first.text
    assert again.schedule == first.schedule
    alone = suggestion(PROBLEM, SHAPE, views(**SHAPE), GPUS["H200"])
    assert alone is not None
    assert format_schedule(replace(alone.schedule, assumes=())) == format_schedule(again.schedule)


@pytest.mark.proof
def test_what_a_choice_depends_on_makes_another(
    count: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    found()
    for made, change in enumerate(
        (
            lambda: found(pitch=776),
            lambda: found(gpu=replace(GPUS["H200"], clock=GPUS["H200"].clock / 2)),
            lambda: found(fast=True),
            lambda: _with_results() or found(),
            lambda: monkeypatch.setattr(installation, "state", lambda: "another") or found(),
        ),
        start=2,
    ):
        change()
        assert len(count) == made


def _with_results() -> None:
    """Creates the file of results: its time and size are in the key."""
    where = store_path.path()
    assert where is not None
    where.touch()


def test_a_damaged_entry_counts_as_absent(count: list[object]) -> None:
    found()
    where = caches.folder()
    assert where is not None
    (entry,) = where.glob("choice-*")
    (entry / "chosen.sched").write_text("gemm nothing")
    siblings.compiled.cache_clear()
    assert found().schedule.gemm == PROBLEM.gemm
    assert len(count) == 2


def test_without_a_cache_each_process_ranks(
    count: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMGEN_CACHE", "0")
    found()
    found()
    assert len(count) == 2


def test_a_file_of_the_package_that_changes_changes_the_state(tmp_path: Path) -> None:
    module = tmp_path / "inner" / "module.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    (tmp_path / "__pycache__").mkdir()
    before = list(installation._described(str(tmp_path)))
    (tmp_path / "__pycache__" / "module.pyc").write_bytes(b"")
    assert list(installation._described(str(tmp_path))) == before
    module.write_text("x = 12\n")
    assert list(installation._described(str(tmp_path))) != before
