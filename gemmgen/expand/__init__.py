"""Expansion of the declared program into operations in time: stages, prologues, waits, barriers."""

from __future__ import annotations

from gemmgen.expand.kernel import expand

__all__ = ["expand"]
