"""``asm`` statements of C++, and the PTX instructions of their templates, as values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gemmgen.base.record import record

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_OPERAND = re.compile(r'\s*"([=+]?&?)([a-z])"\s*\((.*)\)\s*', re.DOTALL)
_TOKEN = re.compile(r"\s+|(%\d+|%%\w+|0[xX][0-9a-fA-F]+|\d+|[A-Za-z_.][\w.:]*|[][{},;])")
_KINDS = "rhlfdn"
"""Constraints: registers of 32, 16 and 64 bits, of a float and of a double; a constant."""

_BARRIERS = ("bar.", "barrier.cluster.")
_OF_GROUPS = ("wgmma.fence.", "wgmma.commit_group.", "wgmma.wait_group.")
_NO_RESULT = (*_BARRIERS, *_OF_GROUPS, "setmaxnreg.", "fence.", "cp.async.")


@record
class AsmOperand:
    """``"=r"(result)``: a C++ expression and its constraint."""

    modifier: str
    kind: str
    expression: str

    @property
    def is_output(self) -> bool:
        return self.modifier != ""


@record
class PtxInstruction:
    """``mnemonic`` and its operands, each a tree of tokens: ``("[", "%0")`` is an address,
    ``("{", "%0", "%1")`` a vector, and ``("[", "%0", "{", "%1", "%2", "}")`` a box of the tensor
    whose map has this address, from these coordinates on."""

    mnemonic: str
    operands: tuple[tuple[str, ...], ...]

    @property
    def takes_memory(self) -> bool:
        """Whether it reads or writes memory, or orders accesses to it, as each without operands
        does."""
        addressed = any(operand[0] == "[" for operand in self.operands)
        orders = ("cp.async", "fence.", *_BARRIERS, *_OF_GROUPS)
        return addressed or not self.operands or self.mnemonic.startswith(orders)

    @property
    def has_result(self) -> bool:
        """Whether its first operand, unless that is an address, is written."""
        return not self.mnemonic.startswith(_NO_RESULT)


@record
class AsmStatement:
    """One ``asm`` statement."""

    is_volatile: bool
    template: str
    operands: tuple[AsmOperand, ...]
    clobbers: tuple[str, ...]


@dataclass
class PtxProgram:
    """The instructions of a template in their order, and the registers that it declares."""

    instructions: list[PtxInstruction] = field(default_factory=list[PtxInstruction])
    registers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def parse_statement(code: str, start: int) -> tuple[AsmStatement, int]:
    """The statement whose ``asm`` ends at ``start``, and where its semicolon ends."""
    head = re.compile(r"\s*(volatile\b)?\s*\(").match(code, start)
    if head is None:
        raise ValueError("an asm statement begins with asm ( or asm volatile (")
    parts, stop = _sections(code, head.end())
    template, outputs, inputs, clobbers, *more = (*parts, *[""] * (4 - len(parts)))
    if more:
        raise ValueError("an asm statement has a template, outputs, inputs and clobbers")
    if _STRING.sub("", template).strip():
        raise ValueError("the template of an asm statement is string literals")
    whole = "".join(_STRING.findall(template)).replace("\\n", "\n").replace("\\t", "\t")
    operands = [_operand(part, output=True) for part in _listed(outputs)]
    operands += [_operand(part, output=False) for part in _listed(inputs)]
    named = tuple(_STRING.findall(clobbers))
    return AsmStatement(head[1] is not None, whole, tuple(operands), named), stop


def _sections(code: str, start: int) -> tuple[list[str], int]:
    """The parts between the colons of a statement, and where its semicolon ends."""
    ends = _top_level(code, start, ":")
    closing = ends[-1]
    stop = re.compile(r"\)\s*;").match(code, closing)
    if stop is None:
        raise ValueError("an asm statement ends with );")
    starts = [start, *(end + 1 for end in ends[:-1])]
    return [code[a:b] for a, b in zip(starts, ends, strict=True)], stop.end()


def _listed(part: str) -> list[str]:
    """``"=r"(a), "=r"(b)`` -> its two operands."""
    if not part.strip():
        return []
    ends = _top_level(part + ")", 0, ",")
    return [part[a:b] for a, b in zip([0, *(e + 1 for e in ends[:-1])], ends, strict=True)]


def _top_level(code: str, start: int, mark: str) -> list[int]:
    """The positions of ``mark`` outside brackets and strings, up to the bracket that closes all;
    the position of that bracket is the last."""
    positions: list[int] = []
    depth, at = 0, start
    while at < len(code):
        found = _STRING.match(code, at)
        if found:
            at = found.end()
            continue
        character = code[at]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth < 0:
                return [*positions, at]
        elif character == mark and depth == 0:
            positions.append(at)
        at += 1
    raise ValueError("an asm statement is not closed")


def _operand(part: str, *, output: bool) -> AsmOperand:
    found = _OPERAND.fullmatch(part)
    if found is None or found[2] not in _KINDS:
        raise ValueError(f"an operand is a constraint and an expression, not {part.strip()}")
    if output != (found[1] != "") or (output and found[2] == "n"):
        raise ValueError(
            f"{part.strip()} is constrained as {'an input' if output else 'an output'}"
        )
    return AsmOperand(found[1], found[2], " ".join(found[3].split()))


def parse_template(template: str) -> PtxProgram:
    tokens: list[str] = []
    at = 0
    while at < len(template):
        found = _TOKEN.match(template, at)
        if found is None:
            raise ValueError(f"PTX is not understood from {template[at:].strip()!r} on")
        if found[1]:
            tokens.append(found[1])
        at = found.end()
    program, depth = PtxProgram(), 0
    while tokens:
        if tokens[0] in "{}":
            depth += 1 if tokens.pop(0) == "{" else -1
            continue
        if ";" not in tokens:
            raise ValueError(f"the instruction {tokens[0]} does not end with a semicolon")
        end = tokens.index(";")
        _add(program, tokens[:end])
        del tokens[: end + 1]
    if depth != 0:
        raise ValueError("a block of PTX is not closed")
    return program


def _add(program: PtxProgram, tokens: list[str]) -> None:
    head, *rest = tokens
    if head == ".reg":
        kind, *names = (token for token in rest if token != ",")
        program.registers += [(kind, name) for name in names]
        return
    if not re.fullmatch(r"[a-z][\w.:]*", head):
        raise ValueError(f"PTX is not understood from {head!r} on")
    operands: list[tuple[str, ...]] = []
    while rest:
        if operands and rest.pop(0) != ",":
            raise ValueError(f"operands of {head} are parted by commas")
        if not rest:
            raise ValueError(f"{head} lacks an operand")
        opening = rest.pop(0)
        if opening not in "[{":
            operands.append((opening,))
            continue
        closing = "]" if opening == "[" else "}"
        if closing not in rest:
            raise ValueError(f"{head} lacks {closing}")
        end = rest.index(closing)
        operands.append((opening, *(token for token in rest[:end] if token != ",")))
        del rest[: end + 1]
    program.instructions.append(PtxInstruction(head, tuple(operands)))
