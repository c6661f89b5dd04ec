"""A host program around a kernel: random inputs, cuBLAS as the rival, timing, a comparison."""

from __future__ import annotations

from gemmgen.emit.main.document import OWN, Wanted, host_program

__all__ = ["OWN", "Wanted", "host_program"]
