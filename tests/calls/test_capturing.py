"""The capture mode of a thread while it loads a kernel: relaxed, and then what it was."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import capturing


def test_the_mode_is_relaxed_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]  # global

    def exchange(at: Any) -> int:
        mode = ctypes.cast(at, ctypes.POINTER(ctypes.c_int))
        now[0], mode[0] = mode[0], now[0]
        return 0

    monkeypatch.setattr(capturing, "driver_function", lambda *_: exchange)
    with capturing.loading_allowed():
        assert now == [2]
        with capturing.loading_allowed():
            assert now == [2]
        assert now == [2]
    assert now == [0]
    with pytest.raises(ValueError), capturing.loading_allowed():
        raise ValueError
    assert now == [0]


def test_without_a_driver_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise CannotCheck("no driver")

    monkeypatch.setattr(capturing, "driver_function", missing)
    with capturing.loading_allowed():
        pass
