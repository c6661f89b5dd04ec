"""Names of types."""

from __future__ import annotations

from .array import ndarray

NDArray = ndarray
