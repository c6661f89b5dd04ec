"""The first architecture that has each PTX instruction of an emitted text.

The PTX ISA states it under "Target ISA Notes" of each instruction; ptxas agrees
(``tests/nvrtc/test_first_architectures.py`` assembles every device function for it, and for the one
before).
"""

from __future__ import annotations

import re

from gemmgen.ir.dtypes import OLDEST

_OF_EACH = r"(atom|bar\.sync|ldmatrix|mad|mov|prmt|red|selp|setp|shfl\.sync|testp)\b.*"
_WMMA = r"wmma\.(load|store|mma)\..*"
_BARRIERS = r"mbarrier\.(init|arrive|test_wait)\..*"

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
    (r"cp\.async\.bulk\..*", 90),
    (r"cp\.async\.(ca|cg|commit_group|wait_group)\b.*", 80),
    (r"createpolicy\..*", 80),
    (r"mbarrier\..*(expect_tx|shared::cluster|try_wait).*", 90),
    (_BARRIERS, 80),
    (r"(barrier\.cluster|fence|griddepcontrol|mapa|setmaxnreg|stmatrix|wgmma)\..*", 90),
)
"""Patterns of whole instructions, the first that matches counts.  ``setmaxnreg`` and ``wgmma`` are
of sm_90a alone, which a target says."""


def first_with(instruction: str) -> int:
    """The first architecture (80 for sm_80) with an instruction, which has all its modifiers.

    One that the table lacks is a bug: the table must say so before a text may have it.
    """
    for pattern, since in _SINCE:
        if re.fullmatch(pattern, instruction):
            return since
    raise AssertionError(f"which architectures have {instruction} is not in ir/ptx_targets.py")
