"""The ``asm`` statements of an emitted text as calls of C++ models of their PTX instructions.

g++ cannot compile PTX, so each statement is replaced, operand by operand:

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(source), "r"(valid) : "memory");

becomes a block that binds the operands (``in_r`` takes what fits a 32-bit register, and so on) and

    gg_ptx::cp_async_cg_shared_global(gg_ptx::address(gg_0), gg_ptx::address(gg_1),
                                      gg_ptx::Immediate<16>(), gg_2);

The model's name is the instruction's with all its modifiers; ``ptx.h`` has one for each instruction
that an emitted text may have, so a text with any other does not compile.  What a run cannot detect
is checked here: ``volatile``, the ``memory`` clobber, and constraints that agree with the operands'
use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gemmgen.base.record import record
from gemmgen.sim.failures import CompileFailure

_ASM = re.compile(r"\basm\b")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_OPERAND = re.compile(r'\s*"([=+]?&?)([a-z])"\s*\((.*)\)\s*', re.DOTALL)
_TOKEN = re.compile(r"\s+|(%\d+|0[xX][0-9a-fA-F]+|\d+|[A-Za-z_.][\w.:]*|[][{},;])")
_KINDS = "rhlfdn"
"""Constraints: registers of 32, 16 and 64 bits, of a float and of a double; a constant."""
_PURE = ("cvt.", "mov.")
"""Instructions that compute a register from registers, and nothing else."""


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
    """``mnemonic`` and its operands, each a tree of tokens: ``("[", "%0")`` is an address, and
    ``("{", "%0", "%1")`` a vector."""

    mnemonic: str
    operands: tuple[tuple[str, ...], ...]

    @property
    def takes_memory(self) -> bool:
        """Whether it reads or writes memory, or orders accesses to it."""
        addressed = any(operand[0] == "[" for operand in self.operands)
        return addressed or self.mnemonic.startswith("cp.async")


@record
class AsmStatement:
    """One ``asm`` statement."""

    is_volatile: bool
    template: str
    operands: tuple[AsmOperand, ...]
    clobbers: tuple[str, ...]


@dataclass
class _Program:
    """The instructions of a template in their order, and the registers that it declares."""

    instructions: list[PtxInstruction] = field(default_factory=list[PtxInstruction])
    registers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def translated(text: str, line: int) -> str:
    """``text``, which begins in line ``line`` of a file, with models in place of its ``asm``
    statements; line numbers do not change.

    Raises CompileFailure for a statement that has no model or is constrained wrongly.
    """
    code = _without_comments(text)
    parts: list[str] = []
    end = 0
    for found in _ASM.finditer(code):
        if found.start() < end:
            continue
        at = line + text.count("\n", 0, found.start())
        try:
            statement, stop = _parse_statement(code, found.end())
            model = model_of(statement)
        except ValueError as wrong:
            raise CompileFailure(f"line {at}: {wrong}") from None
        breaks = text.count("\n", found.start(), stop)
        parts += [text[end : found.start()], model, "\n" * breaks]
        end = stop
    return "".join((*parts, text[end:]))


def model_of(statement: AsmStatement) -> str:
    """C++ that does what ``statement`` does.  Raises ValueError."""
    program = _parse_template(statement.template)
    _check(statement, program)
    lines = [_bound(i, operand) for i, operand in enumerate(statement.operands)]
    lines += [f"gg_ptx::{kind[1:]} gg_{name};" for kind, name in program.registers]
    for instruction in program.instructions:
        name = re.sub(r"\W+", "_", instruction.mnemonic)
        operands = (_argument(operand, statement) for operand in instruction.operands)
        lines.append(f"gg_ptx::{name}({', '.join(operands)});")
    return f"{{ {' '.join(lines)} }}"


def is_collective(text: str) -> bool:
    """Whether ``text`` has an instruction that the lanes of a warp execute together."""
    return re.search(r"\.sync\b", text) is not None


def _without_comments(text: str) -> str:
    """Comments replaced by blanks; each other character keeps its position."""
    return re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)


def _parse_statement(code: str, start: int) -> tuple[AsmStatement, int]:
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


# The template.


def _parse_template(template: str) -> _Program:
    tokens: list[str] = []
    at = 0
    while at < len(template):
        found = _TOKEN.match(template, at)
        if found is None:
            raise ValueError(f"PTX is not understood from {template[at:].strip()!r} on")
        if found[1]:
            tokens.append(found[1])
        at = found.end()
    program, depth = _Program(), 0
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


def _add(program: _Program, tokens: list[str]) -> None:
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


# What a run cannot detect.


def _check(statement: AsmStatement, program: _Program) -> None:
    mnemonics = [instruction.mnemonic for instruction in program.instructions]
    for instruction in program.instructions:
        name = instruction.mnemonic
        if not name.startswith(_PURE) and not statement.is_volatile:
            raise ValueError(f"{name} does more than compute its outputs: asm volatile")
        if instruction.takes_memory and "memory" not in statement.clobbers:
            raise ValueError(f"{name} touches memory, which its statement's clobbers do not say")
    uses = [use for i in program.instructions for use in _uses(i)]
    for name, is_written in uses:
        if not name.startswith("%"):
            continue
        number = int(name[1:])
        if number >= len(statement.operands):
            raise ValueError(f"{name} is no operand of {' and '.join(mnemonics)}")
        operand = statement.operands[number]
        if operand.kind == "n":
            continue
        if is_written and not operand.is_output:
            raise ValueError(f"{name}, {operand.expression}, is written, and is no output")
        if not is_written and operand.modifier.startswith("="):
            raise ValueError(f'{name}, {operand.expression}, is read, and is constrained by "="')
    _check_outputs(statement, uses)


def _check_outputs(statement: AsmStatement, uses: list[tuple[str, bool]]) -> None:
    """Each output is written, and only after the inputs that may share its register are read."""
    for number, operand in enumerate(statement.operands):
        if not operand.modifier.startswith("="):
            continue
        write = (f"%{number}", True)
        if write not in uses:
            raise ValueError(f"%{number}, {operand.expression}, is an output that nothing writes")
        later = uses[uses.index(write) :]
        read = any(name.startswith("%") and not is_written for name, is_written in later)
        if read and "&" not in operand.modifier:
            raise ValueError(f'%{number}, {operand.expression}, is written early: "=&"')


def _uses(instruction: PtxInstruction) -> list[tuple[str, bool]]:
    """The operands that it reads, then the one that it writes: the first, unless that is an
    address."""
    found: list[tuple[str, bool]] = []
    for i, (first, *rest) in enumerate(instruction.operands):
        names = rest if first in "[{" else [first]
        found += [(name, i == 0 and first != "[") for name in names]
    return sorted(found, key=lambda use: use[1])


# C++.


def _bound(number: int, operand: AsmOperand) -> str:
    if operand.kind == "n":
        return ""
    direction = "out" if operand.is_output else "in"
    bound = f"gg_ptx::{direction}_{operand.kind}({operand.expression})"
    return f"[[maybe_unused]] auto{'&' * operand.is_output} gg_{number} = {bound};"


def _argument(tokens: tuple[str, ...], statement: AsmStatement) -> str:
    first, *rest = tokens
    if first not in "[{":
        return _operand_text(first, statement)
    operands = ", ".join(_operand_text(token, statement) for token in rest)
    return f"gg_ptx::{'address' if first == '[' else 'vector'}({operands})"


def _operand_text(token: str, statement: AsmStatement) -> str:
    if not token.startswith("%"):
        constant = f"gg_ptx::Immediate<{token}>()"
        return constant if token[0].isdigit() else f"gg_{token}"
    operand = statement.operands[int(token[1:])]
    if operand.kind == "n":
        return f"gg_ptx::Immediate<({operand.expression})>()"
    return f"gg_{token[1:]}"
