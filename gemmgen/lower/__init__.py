"""From a block's operations to one thread's code."""

from __future__ import annotations

from gemmgen.lower.kernel import lower

__all__ = ["lower"]
