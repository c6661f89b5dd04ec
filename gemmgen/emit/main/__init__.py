"""A host program around a kernel: random inputs, cuBLAS as the rival, timing, a comparison."""

from __future__ import annotations

from gemmgen.emit.main.host_program import MainProgram, program_text
from gemmgen.emit.main.own_names import is_own

__all__ = ["MainProgram", "is_own", "program_text"]
