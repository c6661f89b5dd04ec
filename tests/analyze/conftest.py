"""Counts without machine code: a second less where only accesses are asked for."""

from __future__ import annotations

import pytest

from gemmgen.analyze import resources
from gemmgen.base.errors import CannotCheck


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """``explain`` estimates registers."""

    def refuse(*_: object) -> None:
        raise CannotCheck("nothing is compiled here")

    monkeypatch.setattr(resources, "compile_text", refuse)
