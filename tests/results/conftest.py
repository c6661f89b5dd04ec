from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmgen.explore.results import results_store, store_path
from gemmgen.explore.results.shipped_table import ShippedTable


@pytest.fixture(autouse=True)
def store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """The file of results of this test alone, and nothing said before it; shipped results are there
    for tests with the fixture ``shipped_too``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(results_store, "_said", set())
    if "shipped_too" not in request.fixturenames:
        monkeypatch.setattr(results_store, "shipped", lambda: ShippedTable(()))
    results_store._shared.cache_clear()
    yield tmp_path / "cache" / "gemmgen" / store_path.FILE
    results_store._shared.cache_clear()


@pytest.fixture
def shipped_too() -> None:
    """The table that ships with gemmgen is read, too."""
