"""Rendered pages are kept for the next build, and notebooks become pages with their outputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemmgen_docs import kept, notebooks, records, steps


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept.device, "missing", lambda: "no GPU here")


def never() -> str:
    raise AssertionError("it was rendered again")


def test_a_page_is_rendered_once_and_again_if_it_or_a_source_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert kept.kept("page", lambda: "a", "text") == kept.kept("page", never, "text") == "a"
    assert kept.kept("page", lambda: "b", "other") == "b"
    assert kept.kept("notebook", lambda: "c", "text") == "c"
    monkeypatch.setattr(kept, "sources", lambda: "changed")
    assert kept.kept("page", lambda: "d", "text") == "d"


def test_with_a_gpu_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept.device, "missing", lambda: None)
    assert kept.kept("page", lambda: "a", "text") == "a"
    assert kept.kept("page", lambda: "b", "text") == "b"


def test_links_of_a_notebook_are_those_of_its_page() -> None:
    text = "[a](../../docs/ladder/index.md), [b](first_kernel.ipynb), [c](https://x.org/y)"
    moved = "[a](../ladder/index.md), [b](first_kernel.md), [c](https://x.org/y)"
    assert notebooks.linked(text) == moved


def test_links_of_a_page_of_the_root_stay_within_the_site() -> None:
    text = records.root_page("CONTRIBUTING.md")
    assert "[decision 47](adr/0047-tests-derive-their-lists.md)" in text
    assert "](docs/" not in text and "](../" not in text


def test_every_decision_is_listed() -> None:
    listed = records.decisions()
    files = sorted((records.ROOT / "docs" / "adr").glob("*.md"))
    assert files and all(f"](adr/{path.name})" in listed for path in files)


def test_each_step_is_measured_and_right_at_each_size() -> None:
    for name in steps.STEPS:
        for size in steps.SIZES:
            assert steps.row(name, size)["checked"]
    speeds = [steps.row(name, max(steps.SIZES))["tflops"] for name in steps.STEPS]
    assert max(speeds) == speeds[-1] > 1.5 * speeds[0]


def test_a_step_shows_its_change_and_its_gain() -> None:
    text = steps.taken("steps/wgmma_persistent")
    assert "\n+persistent\n" in text and "Speed over `steps/wgmma_plain`: **" in text
