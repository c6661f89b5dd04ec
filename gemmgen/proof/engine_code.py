"""What a kernel's machine code must have where the copy engine copies its tiles, and must not."""

from __future__ import annotations

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import sass
from gemmgen.gpu.compiler import compile_text
from gemmgen.ir.edit import copies
from gemmgen.pipeline import Emitted

PROMISED = {"UTMALDG": "the copy engine's loads", "SYNCS": "barriers in shared memory"}
"""Instructions that such a kernel has."""
FENCES = ("MEMBAR", "CCTL", "ERRBAR")
"""Instructions that stop all of a GPU's or a cache's accesses: none belongs into the main loop."""


def complaint(emitted: Emitted) -> str | None:
    """A sentence about the first instruction that is missing, or one too many; None where nothing
    is, or no tool here reads machine code."""
    if not any(copy.mode == "tma" for copy in copies(emitted.program.main)):
        return None
    try:
        code = sass.disassemble(compile_text(emitted.text, emitted.target).cubin)
    except CannotCheck:
        return None
    for name, what in PROMISED.items():
        if not sass.count(code, name):
            return f"{emitted.target}: the machine code has no {name} ({what})"
    for name in FENCES:
        if sass.count(sass.main_loop(code) or (), name):
            return f"{emitted.target}: the main loop has a {name}, which waits for all of memory"
    return None
