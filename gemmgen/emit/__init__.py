"""From lowered code to CUDA C, which is in templates, one a kind of node, and in ``.cuh`` files."""

from __future__ import annotations

from gemmgen.emit.document import emit, emit_header
from gemmgen.emit.launcher_types import ELEMENT_TYPES, ElementTypes
from gemmgen.emit.scopes import names_of

__all__ = ["ELEMENT_TYPES", "ElementTypes", "emit", "emit_header", "names_of"]
