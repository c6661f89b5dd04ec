"""From lowered code to CUDA C: views of finished text, and templates that only print them."""

from __future__ import annotations

from gemmgen.emit.document import emit

__all__ = ["emit"]
