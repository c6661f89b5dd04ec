from __future__ import annotations

from collections.abc import Iterator

import pytest

from gemmgen.explore.results import results_store
from gemmgen.explore.results.shipped_table import ShippedTable


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """These tests are of the cost model and of what it chooses."""
    monkeypatch.setattr(results_store, "shipped", lambda: ShippedTable(()))
    results_store._shared.cache_clear()
    yield
    results_store._shared.cache_clear()
