"""A cache of bounded size; a new entry evicts the oldest one.

There is no lock, which a fork could leave locked: each operation of a dictionary is atomic.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """``get`` is as fast as a dictionary's; threads and forks may use it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[K, V] = {}
        self.get = self._entries.get

    def put(self, key: K, value: V) -> None:
        entries = self._entries
        while len(entries) >= self._most and key not in entries:
            with suppress(RuntimeError, StopIteration):  # another thread changed it meanwhile
                entries.pop(next(iter(entries)), None)
        entries[key] = value

    def __len__(self) -> int:
        return len(self._entries)
