"""A host program around a kernel: random inputs, cuBLAS as the rival, timing, a comparison."""

from __future__ import annotations

from gemmgen.emit.main.host_program import OWN, MainProgram, program_text

__all__ = ["OWN", "MainProgram", "program_text"]
