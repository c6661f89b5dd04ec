"""From what is declared to when it runs: stages, prologues, waits and barriers."""

from __future__ import annotations

from gemmgen.expand.kernel import expand

__all__ = ["expand"]
