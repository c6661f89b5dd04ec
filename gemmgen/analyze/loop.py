"""The main loop in machine code: the share of instructions that compute, and operand reuse.

An operand marked ``.reuse`` stays in a small cache in front of the register file, where the next
instruction finds it: two operands of one bank then cost no second turn.
"""

from __future__ import annotations

import re
from collections import Counter

from gemmgen.base.record import record
from gemmgen.gpu import sass, sass_loops
from gemmgen.gpu.register_banks import conflicts

INSTRUCTION = 16
"""Bytes of an instruction, since sm_70."""
SOURCES = 3
"""Operands that a multiply-add reads."""


@record
class LoopCode:
    """One turn of the loop over k tiles: ``count`` instructions ``arithmetic`` (FFMA, HMMA) and
    ``others``.

    ``reuse`` is the share of the former with an operand marked ``.reuse``, ``operands`` the share
    of the marks among all that they read.  ``conflicts``: FFMA that fetch three registers of one
    bank (``gpu/register_banks.py``).
    """

    arithmetic: str
    count: int
    others: int
    reuse: float
    operands: float
    conflicts: int = 0

    @property
    def code(self) -> int:
        """Bytes of instructions; an H200 keeps 128 KiB at hand, and waits for more."""
        return INSTRUCTION * (self.count + self.others)

    @property
    def overhead(self) -> float:
        """The share of instructions that do not compute."""
        return self.others / (self.count + self.others)


def loop_code(cubin: bytes) -> LoopCode | None:
    """The main loop of a cubin's only kernel; None if it has no loop that computes.

    Raises ``CannotCheck`` if nothing here reads machine code.
    """
    return measured(sass.disassemble(cubin))


def measured(code: sass.Code) -> LoopCode | None:
    """The figures of ``code``'s main loop."""
    body = sass_loops.main_loop(code)
    if body is None:
        return None
    kinds = Counter(i.opcode.split(".")[0] for i in body if i.is_a(*sass.ARITHMETIC))
    (name, _), *_ = kinds.most_common()
    count = sum(kinds.values())
    marks = sum(len(re.findall(r"\.reuse\b", i.operands)) for i in body if i.is_a(name))
    return LoopCode(
        name,
        count,
        len(body) - count,
        sass.reuse_share(body, name),
        marks / (SOURCES * kinds[name]),
        conflicts(body),
    )
