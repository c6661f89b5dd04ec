"""From lowered code to CUDA C, which is in templates, one a kind of node, and in ``.cuh`` files."""

from __future__ import annotations

from gemmgen.emit.document import emit

__all__ = ["emit"]
