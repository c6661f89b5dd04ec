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
use.  A statement without an instruction tells the compiler that its outputs change, and the model
which registers those are.
"""

from __future__ import annotations

import re

from gemmgen.sim import asm_parser
from gemmgen.sim.asm_parser import AsmOperand, AsmStatement, PtxInstruction
from gemmgen.sim.failures import TextFailure

_ASM = re.compile(r"\basm\b")
_PURE = ("createpolicy.", "cvt.", "mad.", "mapa.", "mov.", "prmt.", "selp.", "testp.")
"""Instructions that compute a register from registers, and nothing else."""


def translated(text: str, line: int) -> str:
    """``text``, which begins in line ``line`` of a file, with models in place of its ``asm``
    statements; line numbers do not change.

    Raises TextFailure for a statement that is not understood or is constrained wrongly.
    """
    code = _without_comments(text)
    parts: list[str] = []
    end = 0
    for found in _ASM.finditer(code):
        if found.start() < end:
            continue
        at = line + text.count("\n", 0, found.start())
        try:
            statement, stop = asm_parser.parse_statement(code, found.end())
            model = model_of(statement)
        except ValueError as wrong:
            raise TextFailure(f"line {at}: {wrong}") from None
        breaks = text.count("\n", found.start(), stop)
        parts += [text[end : found.start()], model, "\n" * breaks]
        end = stop
    return "".join((*parts, text[end:]))


def instructions_of(text: str) -> tuple[str, ...]:
    """The PTX instructions of a text's ``asm`` statements, with all modifiers, each once."""
    code = _without_comments(text)
    found = dict[str, None]()
    for asm in _ASM.finditer(code):
        statement, _ = asm_parser.parse_statement(code, asm.end())
        program = asm_parser.parse_template(statement.template)
        found |= dict.fromkeys(each.mnemonic for each in program.instructions)
    return tuple(found)


def model_of(statement: AsmStatement) -> str:
    """C++ that does what ``statement`` does.  Raises ValueError."""
    program = asm_parser.parse_template(statement.template)
    _check(statement, program)
    lines = [_bound(i, operand) for i, operand in enumerate(statement.operands)]
    lines += [f"gg_ptx::{kind[1:]} gg_{name};" for kind, name in program.registers]
    for instruction in program.instructions:
        name = re.sub(r"\W+", "_", instruction.mnemonic)
        operands = (_argument(operand, statement) for operand in instruction.operands)
        lines.append(f"gg_ptx::{name}({', '.join(operands)});")
    if not program.instructions:
        named = (i for i, operand in enumerate(statement.operands) if operand.is_output)
        lines += [f"gg_ptx::changes(gg_{i});" for i in named]
    return f"{{ {' '.join(lines)} }}"


def needs_line(text: str) -> bool:
    """Whether ``text`` has an instruction whose model reports where it is called: one that the
    lanes of a warp execute together, that has to do with a barrier, or that starts a copy of a
    box or waits for one.  A comment may name that of the next function."""
    pattern = r"\.sync\b|\bmbarrier\.|\.bulk\b|\bbarrier\.cluster\b"
    return re.search(pattern, _words(text)) is not None


def needs_clocks(text: str) -> bool:
    """Whether threads of ``text`` wait for others than all of their block, or of their warp, or
    something works beside them, or blocks of a cluster run together."""
    pattern = r"\b(?:bar\.|mbarrier\.|barrier\.cluster|cp\.async\.bulk|wgmma\.|__cluster_dims__)"
    return re.search(pattern, _words(text)) is not None


def _words(text: str) -> str:
    """``text`` without comments, and with blanks for the ends of lines in strings."""
    return _without_comments(text).replace("\\n", "  ")


def _without_comments(text: str) -> str:
    """Comments replaced by blanks; each other character keeps its position."""
    return re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)


# What a run cannot detect.


def _check(statement: AsmStatement, program: asm_parser.PtxProgram) -> None:
    mnemonics = [instruction.mnemonic for instruction in program.instructions]
    for instruction in program.instructions:
        name = instruction.mnemonic
        if not name.startswith(_PURE) and not statement.is_volatile:
            raise ValueError(f"{name} does more than compute its outputs: asm volatile")
        if instruction.takes_memory and "memory" not in statement.clobbers:
            raise ValueError(f"{name} touches memory, which its statement's clobbers do not say")
    if not program.instructions and any(x.kind != "l" for x in statement.operands):
        _check_order(statement)
    uses = [use for i in program.instructions for use in _uses(i)]
    for name, is_written in uses:
        if not re.match(r"%\d", name):
            continue
        number = int(name[1:])
        if number >= len(statement.operands):
            raise ValueError(f"{name} is not an operand of {' and '.join(mnemonics)}")
        operand = statement.operands[number]
        if operand.kind == "n":
            continue
        if is_written and not operand.is_output:
            raise ValueError(f"{name}, {operand.expression}, is written, and is not output")
        if not is_written and operand.modifier.startswith("="):
            raise ValueError(f'{name}, {operand.expression}, is read, and is constrained by "="')
    _check_outputs(statement, uses)


def _check_order(statement: AsmStatement) -> None:
    """A statement without an instruction keeps uses of accumulators after the wait above it.  One
    that only hides where a pointer comes from has no place to keep."""
    if not statement.is_volatile:
        raise ValueError("accumulators may be read before the statement above: asm volatile")
    if "memory" not in statement.clobbers:
        raise ValueError("memory accesses may pass the statement: its clobbers lack memory")


def _check_outputs(statement: AsmStatement, uses: list[tuple[str, bool]]) -> None:
    """Each output is written, and only after the inputs that may share its register are read."""
    for number, operand in enumerate(statement.operands):
        if not operand.modifier.startswith("="):
            continue
        write = (f"%{number}", True)
        if write not in uses:
            raise ValueError(f"%{number}, {operand.expression}, is an output that nothing writes")
        later = uses[uses.index(write) :]
        read = any(re.match(r"%\d", name) and not is_written for name, is_written in later)
        if read and "&" not in operand.modifier:
            raise ValueError(f'%{number}, {operand.expression}, is written early: "=&"')


def _uses(instruction: PtxInstruction) -> list[tuple[str, bool]]:
    """The operands that it reads, then the one that it writes: the first, unless that is an
    address or the instruction has no result."""
    found: list[tuple[str, bool]] = []
    for i, (first, *rest) in enumerate(instruction.operands):
        names = rest if first in "[{" else [first]
        is_written = i == 0 and first != "[" and instruction.has_result
        found += [(name, is_written) for name in names]
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
    if "{" in rest:
        at = rest.index("{")
        box = (_argument(("[", *rest[:at]), statement), _argument(tuple(rest[at:-1]), statement))
        return ", ".join(box)
    operands = ", ".join(_operand_text(token, statement) for token in rest)
    return f"gg_ptx::{'address' if first == '[' else 'vector'}({operands})"


def _operand_text(token: str, statement: AsmStatement) -> str:
    if token == "_":
        return "gg_ptx::Sink()"
    if token.startswith("%%"):
        return f"gg_ptx::{token[2:]}()"
    if not token.startswith("%"):
        constant = f"gg_ptx::Immediate<{token}>()"
        return constant if token[0].isdigit() else f"gg_{token}"
    operand = statement.operands[int(token[1:])]
    if operand.kind == "n":
        return f"gg_ptx::Immediate<({operand.expression})>()"
    return f"gg_{token[1:]}"
