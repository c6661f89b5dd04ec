"""Check the machine code of kernels whose tiles TMA copies."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.gpu import sass, sass_loops
from gemmgen.gpu.compiler import compile_text
from gemmgen.ir.edit import copies, copy_outward
from gemmgen.pipeline import Emitted
from gemmgen.proof.code_findings import Findings

LOADS = {"UTMALDG": "TMA's loads", "SYNCS": "barriers in shared memory"}
STORES = {"UTMASTG": "TMA's stores", "UTMACMDFLUSH": "groups of them"}
"""The instructions with which TMA copies into shared memory, or out of it."""
FENCES = ("MEMBAR", "CCTL", "ERRBAR")
"""Instructions that stop all of a GPU's or a cache's accesses, which no loop over k tiles does."""
OF_BLOCK = ".CTA"
"""What is in the names of those that stop a block's own, as the fence before a store by boxes."""


def findings(emitted: Emitted) -> Findings:
    """An error for an instruction that is missing; a note for one that waits for all of memory.

    Raises ``CannotCheck`` if no tool here reads machine code.
    """
    kernel = emitted.program.main
    outward = copy_outward(kernel)
    ways = {copy == outward for copy in copies(kernel) if copy.mode == "tma"}
    if not ways:
        return Findings()
    promised = (LOADS if False in ways else {}) | (STORES if True in ways else {})
    code = sass.disassemble(compile_text(emitted.text, emitted.target).cubin)
    errors = (
        f"{emitted.target}: the machine code has no {name} ({what})"
        for name, what in promised.items()
        if not sass.count(code, name)
    )
    notes = (
        f"{emitted.target}: a loop over k tiles has a {one.opcode}, which waits for all accesses"
        for loop in _of_k_tiles(code)
        for one in loop
        if one.is_a(*FENCES) and OF_BLOCK not in one.opcode
    )
    return Findings(tuple(errors), tuple(dict.fromkeys(notes)))


def _of_k_tiles(code: sass.Code) -> Iterator[sass.Code]:
    """The main loop, and those of a producer, which ask for tiles and compute nothing."""
    yield sass_loops.main_loop(code) or ()
    for loop in sass_loops.loops(code):
        if sass.count(loop, "UTMALDG") and not sass.count(loop, *sass.ARITHMETIC):
            yield loop
