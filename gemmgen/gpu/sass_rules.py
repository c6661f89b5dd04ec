"""Patterns of machine code that are illegal on every GPU, each with its reason.

An instruction encodes the number of an operand's first register.  An operand of several registers
begins at a multiple of their number, and a uniform register that is read is written somewhere.
Only a defect of ptxas breaks these rules: the GPU then reports an illegal instruction or reads
other registers.  Decision 69 has the defect that was seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from gemmgen.base.record import record
from gemmgen.gpu.sass import Code, SassInstruction

_BARE = re.compile(r"[-~!|]*(U?R)(\d+)(?:\.reuse|\.ROW|\.COL)*\|?")
"""An operand that is a register: group 1 is its file, group 2 its number."""
_LOADS = ("LD", "LDG", "LDS", "LDL", "LDC", "LDSM", "ULDC", "LDCU")
_STORES = ("ST", "STG", "STS", "STL", "STSM")
_WORDS = {"64": 2, "128": 4, "256": 8}
_MATRICES = {"2": 2, "4": 4}
_PAIRS = ("DADD", "DMUL", "DFMA", "DMMA", "DSETP")
_PAIRS_IF_64 = ("IADD", "MOV", "UIADD3", "UMOV")


@record
class Rule:
    """``finds`` says whether an instruction breaks the rule; ``why`` is a clause for a message."""

    name: str
    why: str
    finds: Callable[[SassInstruction], bool]


@record
class Violation:
    """An instruction that no GPU runs as it is meant, and why."""

    instruction: SassInstruction
    why: str

    def text(self) -> str:
        """``0e70 LDGSTS.E.64 [R68+UR0], desc[UR1][R48.64]: a descriptor of ...``."""
        line = f"{self.instruction.opcode} {self.instruction.operands}".strip()
        return f"{self.instruction.address:04x} {line}: {self.why}"


def operands(instruction: SassInstruction) -> list[str]:
    """The operands, without the spaces around them; commas in brackets separate none here."""
    return [part.strip() for part in instruction.operands.split(",")]


def registers(instruction: SassInstruction) -> list[int]:
    """The numbers of the operands that are registers, of either file, in their order."""
    found = (_BARE.fullmatch(operand) for operand in operands(instruction))
    return [int(match[2]) for match in found if match]


def _in_address(pattern: str, size: int) -> Callable[[SassInstruction], bool]:
    """Whether a register of an operand like ``pattern`` is not at a multiple of ``size``."""
    compiled = re.compile(pattern)
    return lambda one: any(int(n) % size for n in compiled.findall(one.operands))


def _data(one: SassInstruction) -> bool:
    """Whether what a load writes or a store reads is not at a multiple of its registers."""
    of_matrices = one.is_a("LDSM", "STSM")
    widths = _MATRICES if of_matrices else _WORDS
    size = max((widths.get(part, 1) for part in one.opcode.split(".")), default=1)
    if one.is_a(*_LOADS):
        first = _BARE.fullmatch(operands(one)[0])
        return first is not None and int(first[2]) % size != 0
    if one.is_a(*_STORES):
        last = _BARE.fullmatch(operands(one)[-1])
        return last is not None and int(last[2]) % size != 0
    return False


def _pairs(one: SassInstruction) -> bool:
    of_64 = "64" in one.opcode.split(".") and one.is_a(*_PAIRS_IF_64)
    return (of_64 or one.is_a(*_PAIRS)) and any(n % 2 for n in registers(one))


def _wide(one: SassInstruction) -> bool:
    """The product, and the addend: two numbers of 64 bits beside two of 32."""
    if not one.is_a("IMAD.WIDE", "UIMAD.WIDE"):
        return False
    listed = operands(one)
    ends = [_BARE.fullmatch(listed[0]), _BARE.fullmatch(listed[-1])]
    return any(match is not None and int(match[2]) % 2 for match in ends)


def _accumulator(one: SassInstruction) -> bool:
    """Four registers of a warp's product: the first operand, and the last."""
    of_four = (one.is_a("HMMA", "QMMA") and ".F32" in one.opcode) or one.is_a("IMMA.16832")
    if not of_four:
        return False
    listed = operands(one)
    ends = [_BARE.fullmatch(listed[0]), _BARE.fullmatch(listed[-1])]
    return any(match is not None and int(match[2]) % 4 for match in ends)


def _two_descriptors(one: SassInstruction) -> bool:
    """Both operands of a warpgroup's product in shared memory: four registers."""
    if not one.is_a("HGMMA", "IGMMA", "QGMMA"):
        return False
    found = re.match(r"gdesc\[UR(\d+)\]", operands(one)[1])
    return found is not None and int(found[1]) % 4 != 0


RULES: tuple[Rule, ...] = (
    Rule(
        "descriptor",
        "a descriptor of global memory is a pair of uniform registers, which begins at an even one",
        _in_address(r"\bdesc\[UR(\d+)\]", 2),
    ),
    Rule(
        "address",
        "an address of 64 bits is a pair of registers, which begins at an even one",
        _in_address(r"\[U?R(\d+)\.64", 2),
    ),
    Rule(
        "base of addresses",
        "a base of 64 bits is a pair of uniform registers, which begins at an even one",
        _in_address(r"\.U32\+UR(\d+)", 2),
    ),
    Rule(
        "matrix descriptor",
        "a matrix descriptor is a pair of uniform registers, which begins at an even one",
        _in_address(r"\bgdesc\[UR(\d+)\]", 2),
    ),
    Rule(
        "two matrix descriptors",
        "two matrix descriptors are four uniform registers, which begin at a multiple of 4",
        _two_descriptors,
    ),
    Rule(
        "tensor map",
        "a tensor map's address is a pair of uniform registers, which begins at an even one",
        lambda one: one.is_a("UTMALDG", "UTMASTG") and _in_address(r"\[UR(\d+)\]", 2)(one),
    ),
    Rule(
        "vector",
        "data of 64 or 128 bits begin at a register whose number is a multiple of 2 or 4",
        _data,
    ),
    Rule("pair", "a number of 64 bits is a pair of registers, which begins at an even one", _pairs),
    Rule(
        "wide product",
        "a product of 64 bits and its addend are pairs of registers, which begin at even ones",
        _wide,
    ),
    Rule(
        "accumulator",
        "an accumulator of four registers begins at a multiple of 4",
        _accumulator,
    ),
)
"""What breaks a rule whatever is around it."""

UNWRITTEN = "it reads a uniform register that no instruction of the function writes"
"""What no single instruction shows."""


def violations(code: Code) -> Iterator[Violation]:
    """Each instruction of a function that breaks a rule, with the first such rule's reason."""
    written = set[int]().union(*(_writes(one) for one in code))
    for one in code:
        broken = [rule.why for rule in RULES if rule.finds(one)]
        if not _reads(one) <= written:
            broken.append(UNWRITTEN)
        if broken:
            yield Violation(one, broken[0])


def _reads(one: SassInstruction) -> set[int]:
    """The uniform registers that its operands name, except the one that it writes."""
    at = _target(one)
    return _named(operands(one)[0 if at is None else at + 1 :])


def _writes(one: SassInstruction) -> set[int]:
    at = _target(one)
    if at is None:
        return set()
    (first,) = _named([operands(one)[at]])
    parts = one.opcode.split(".")
    size = max(2 if "WIDE" in parts else 1, *(_WORDS.get(part, 1) for part in parts))
    return set(range(first, first + size))


def _target(one: SassInstruction) -> int | None:
    """The position of the uniform register that it writes: the first operand but for predicates,
    of an instruction that does more than set those."""
    if "SETP" in one.opcode:
        return None
    for at, operand in enumerate(operands(one)):
        if re.fullmatch(r"!?U?P(\d|T)", operand):
            continue
        match = _BARE.fullmatch(operand)
        return at if match is not None and match[1] == "UR" else None
    return None


def _named(listed: Iterable[str]) -> set[int]:
    return {int(n) for operand in listed for n in re.findall(r"\bUR(\d+)\b", operand)}
