"""Register bank conflicts of multiply-adds, counted in machine code.

Registers are in banks by their number.  A multiply-add reads three; those that one bank cannot
deliver together take another clock.

Volta and later (sm_70 on) have two banks, of even and of odd registers.  Each delivers 64 bits a
clock, two registers: three sources of one bank are a conflict (Jia, Maggioni, Staiger, Scarpazza,
"Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section "Register
banks"; the same authors find the same on Turing, 2019).  Maxwell and Pascal have four, and each
delivers one: two sources of one bank are a conflict (S. Gray, "SGEMM", the notes on the assembler
maxas, 2014).  Tutorials that speak of four banks mean these.

An operand that the instruction before read in the same position, marked ``.reuse`` there, comes
from a small cache in front of the banks; a register that is read twice is fetched once.
"""

from __future__ import annotations

import re
from itertools import pairwise

from gemmgen.base.record import record
from gemmgen.gpu.sass import Code, SassInstruction

_REGISTER = re.compile(r"[-|~]*R(\d+)\|?(\.reuse)?\|?")
MULTIPLY_ADD = "FFMA"
"""Of single registers; those of wider operands (DFMA, HMMA) are not judged here."""


@record
class Banks:
    """``count`` banks, each of which delivers ``ports`` registers a clock."""

    count: int
    ports: int


VOLTA, MAXWELL = Banks(2, 2), Banks(4, 1)


def banks_of(arch: str) -> Banks:
    """The register file of ``sm_90``."""
    return VOLTA if int(arch.removeprefix("sm_").rstrip("af")) >= 70 else MAXWELL


def sources(instruction: SassInstruction) -> tuple[tuple[int, bool] | None, ...]:
    """Registers that an instruction reads, by position, and whether they are marked ``.reuse``;
    None for a constant, an immediate or RZ."""
    found: list[tuple[int, bool] | None] = []
    for operand in instruction.operands.split(", ")[1:]:
        match = _REGISTER.fullmatch(operand.strip())
        found.append((int(match[1]), match[2] is not None) if match else None)
    return tuple(found)


def fetched(instruction: SassInstruction, before: SassInstruction | None) -> frozenset[int]:
    """Registers that come from the banks, not from what the instruction ``before`` kept."""
    kept = sources(before) if before is not None else ()
    held = {(at, source[0]) for at, source in enumerate(kept) if source and source[1]}
    own = ((at, source[0]) for at, source in enumerate(sources(instruction)) if source)
    return frozenset(register for at, register in own if (at, register) not in held)


def has_conflict(
    instruction: SassInstruction, before: SassInstruction | None, banks: Banks = VOLTA
) -> bool:
    """Whether a multiply-add fetches more registers of one bank than it delivers in a clock."""
    if not instruction.is_a(MULTIPLY_ADD):
        return False
    of_bank = [0] * banks.count
    for register in fetched(instruction, before):
        of_bank[register % banks.count] += 1
    return max(of_bank) > banks.ports


def conflicts(loop: Code, banks: Banks = VOLTA) -> int:
    """Multiply-adds of a loop's body with a conflict; the first follows the last."""
    if not loop:
        return 0
    pairs = pairwise((loop[-1], *loop))
    return sum(has_conflict(instruction, before, banks) for before, instruction in pairs)
