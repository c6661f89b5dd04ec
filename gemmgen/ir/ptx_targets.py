"""The first architecture that has each PTX instruction of an emitted text.

The PTX ISA states it under "Target ISA Notes" of each instruction; ptxas agrees
(``tests/nvrtc/test_first_architectures.py`` assembles every device function for it, and for the one
before).
"""

from __future__ import annotations

import re

from gemmgen.ir.dtypes import OLDEST
from gemmgen.ir.instruction_table import INSTRUCTIONS

_OF_EACH = r"(atom|mad|mov|prmt|selp|setp|shfl\.sync|testp)\b.*"
_WMMA = r"wmma\.(load|store|mma)\..*"

_SINCE: tuple[tuple[str, int], ...] = (
    (_OF_EACH, OLDEST),
    (r"cvt\.(f32\.f16|rn\.f16\.f32|rni\.sat\.s8\.f32)", OLDEST),
    (r"cvt\.(rn\.bf16(x2)?\.f32|rna\.tf32\.f32)", 80),
    (r"cvt\.rn\..*e[45]m[32]x2.*", 89),
    (rf"{_WMMA}bf16.*", 80),
    (_WMMA, OLDEST),
    (r"mma\.sync\.aligned\.m16n8k8\..*f16.*", OLDEST),
    (r"mma\.sync\.aligned\.m16n8k32\..*e[45]m[32].*", 89),
    (r"mma\.sync\.aligned\.m16n8k(4|8|16)\..*f64.*", 90),
    (r"mma\.sync\.aligned\.(m16n8k(8|16|32)|m8n8k4)\..*", 80),
    (r"createpolicy\..*", 80),
    (r"mapa\..*", 90),
)
"""Patterns of instructions that have no row in ``ir/instruction_table.py``; the first that matches
counts.  ``setmaxnreg`` and ``wgmma`` are of sm_90a alone, which a target says."""


def first_with(instruction: str) -> int:
    """The first architecture (80 for sm_80) with an instruction, which has all its modifiers.

    The row whose mnemonic is the longest part of it says so, else a pattern.  One that both lack is
    a bug: it must be stated before a text may have it.
    """
    rows = [row for row in INSTRUCTIONS.values() if f"{instruction}.".startswith(f"{row.ptx}.")]
    if rows and (since := max(rows, key=lambda row: len(row.ptx)).since) is not None:
        return since
    for pattern, since in _SINCE:
        if re.fullmatch(pattern, instruction):
            return since
    raise AssertionError(f"which architectures have {instruction} is not stated")
