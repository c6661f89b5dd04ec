"""A cache of bounded size; a new entry evicts the oldest one."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """``get`` is as fast as a dictionary's; thread-safe."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._entries: dict[K, V] = {}
        self.get = self._entries.get

    def put(self, key: K, value: V) -> None:
        with self._lock:
            if key not in self._entries and len(self._entries) >= self._most:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = value

    def __len__(self) -> int:
        return len(self._entries)
