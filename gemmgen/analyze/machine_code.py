"""The main loop in machine code, annotated with classes of instructions and bank conflicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.loop import measured
from gemmgen.analyze.resources import architecture
from gemmgen.analyze.section import Section
from gemmgen.gpu import sass, sass_loops
from gemmgen.gpu.compiler import compile_text
from gemmgen.gpu.gpus import Gpu
from gemmgen.gpu.register_banks import MULTIPLY_ADD, Banks, banks_of, conflicts, has_conflict
from gemmgen.ir.interface import Interface

CLASSES = {
    **{name: name for name in sass.ARITHMETIC},
    "LDS": "shared reads",
    "LDSM": "shared reads",
    "STS": "shared writes",
    "LDG": "global reads",
    "LDGSTS": "asynchronous copies",
    **dict.fromkeys(("UTMALDG", "UTMASTG"), "asynchronous copies"),
    "STG": "global writes",
    **dict.fromkeys(("IMAD", "IADD", "IADD3", "LEA", "SHF", "LOP3", "IABS"), "integers"),
    **dict.fromkeys(("UIADD3", "UIMAD", "ULEA", "USHF", "ULOP3", "VIADD"), "integers"),
    **dict.fromkeys(("ISETP", "UISETP", "PLOP3", "UPLOP3", "SEL", "USEL"), "conditions"),
    **dict.fromkeys(("MOV", "UMOV", "R2UR", "CS2R", "S2R", "S2UR", "LDC", "ULDC", "LDCU"), "moves"),
    **dict.fromkeys(("HADD2", "F2F", "F2FP", "PRMT"), "conversions"),
    **dict.fromkeys(("BAR", "DEPBAR", "LDGDEPBAR", "WARPSYNC", "SYNCS"), "waits"),
    **dict.fromkeys(("BRA", "BSSY", "BSYNC", "EXIT"), "branches"),
    "NOP": "padding",
}
OTHER = "others"
CONFLICT, REUSES = "!", "r"
"""Marks of a line: sources of one bank; operands kept for the next instruction."""


def machine_code(kernel: AnalyzedKernel, gpu: Gpu) -> tuple[Section, str]:
    """A table of the main loop's instructions, and its lines with their marks.

    A kernel without a loop that computes is shown as a whole.  Raises ``CannotCheck`` if nothing
    here compiles, or reads machine code.
    """
    arch = architecture(kernel.emitted.schedule, gpu)
    code = sass.disassemble(compile_text(kernel.emitted.text, arch).cubin)
    body = sass_loops.main_loop(code)
    what = "main loop" if body else "kernel, which has no main loop"
    found = classes(body or code, arch, what)
    notes = _around(code, body, kernel.lowered.interface) if body else ()
    return replace(found, notes=notes + found.notes), annotated(body or code, banks_of(arch))


def _around(code: sass.Code, body: sass.Code, interface: Interface) -> tuple[str, ...]:
    """The loop around the main loop."""
    around = sass_loops.loop_around(code, body)
    if around is None:
        return ()
    over = ", over a block's tiles" if interface.resident else ""
    return (f"it is inside a loop{over}: {len(around):,} instructions with it",)


def classes(body: sass.Code, arch: str, what: str) -> Section:
    """The number of instructions of each class, and the reads of the register file."""
    found = Counter(class_of(instruction) for instruction in body)
    rows = tuple(
        (name, f"{count:,}", f"{count / len(body):.1%}") for name, count in found.most_common()
    )
    title = f"machine code of the {what}, {arch}: {len(body):,} instructions"
    return Section(title, ("", "count", "share"), rows, tuple(_registers(body, banks_of(arch))))


def _registers(body: sass.Code, banks: Banks) -> list[str]:
    """What the multiply-adds read from the register file."""
    count, figures = sass.count(body, MULTIPLY_ADD), measured(body)
    if not count:
        return [f"register banks are counted for {MULTIPLY_ADD} only, and there is none"]
    found = conflicts(body, banks)
    reuse = sass.reuse_share(body, MULTIPLY_ADD)
    operands = f", {figures.operands:.0%} of the operands" if figures else ""
    sources = "three sources" if banks.ports == 2 else "two sources"
    return [
        f"{REUSES}: {reuse:.1%} of the {MULTIPLY_ADD} mark an operand .reuse{operands}",
        f"{CONFLICT}: {found:,} {MULTIPLY_ADD}, {found / count:.1%}, fetch {sources} from one of "
        f"{banks.count} register banks, a clock more each",
    ]


def class_of(instruction: sass.SassInstruction) -> str:
    """``shared reads`` of an LDS."""
    return CLASSES.get(instruction.opcode.split(".")[0], OTHER)


def annotated(body: sass.Code, banks: Banks) -> str:
    """Each line with its marks, its address and its class."""
    lines: list[str] = []
    for before, instruction in pairwise((body[-1], *body)):
        marks = CONFLICT if has_conflict(instruction, before, banks) else " "
        marks += REUSES if ".reuse" in instruction.operands else " "
        text = f"{instruction.opcode} {instruction.operands}".strip()
        guarded = f"{instruction.guard} {text}".strip()
        lines.append(f"  {marks} {instruction.address:05x}  {guarded:<60}  {class_of(instruction)}")
    return "\n".join(line.rstrip() for line in lines) + "\n"
