from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.explore.results import results_store


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of results of this test alone, and nothing said before it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(results_store, "_said", set())
    return tmp_path / "cache" / "gemmgen" / results_store.FILE
