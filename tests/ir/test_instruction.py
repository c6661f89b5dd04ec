"""An instruction is what its row says: a name, operands of their kinds, a result or none."""

from __future__ import annotations

import re

import pytest

from gemmgen.emit import device_functions
from gemmgen.ir.expr import Element, Expr, Int, Unary, Var
from gemmgen.ir.instruction import Instruction, InstructionError, instruction
from gemmgen.ir.instruction_table import INSTRUCTIONS
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.textcursor import IRTextError
from gemmgen.sim.ptx import instructions_of

FULL = Element("full", (Var("stage"),))


@pytest.mark.parametrize(
    ("name", "operands", "result", "message"),
    [
        ("sync_all", (), "", "sync_all is not an instruction"),
        ("wait_group", (), "", "wait_group takes pending, not 0 operands"),
        ("sync_block", (Int(1),), "", "sync_block takes no operand, not 1 operands"),
        ("arrive", (Int(0),), "", "barrier of arrive must be of kind barrier"),
        ("wgmma_end", (FULL,), "", "accumulators of wgmma_end must be of kind array"),
        ("test_wait", (FULL, Int(0)), "", "test_wait needs a result"),
        ("store_box", (Var("C"),), "", "store_box takes map, source, *at, not 1 operands"),
        ("add", (FULL, Int(0)), "", "the modifiers of add are dtype"),
        ("sync_block", (), "x", "sync_block has no result"),
    ],
)
def test_refuses_what_no_row_describes(
    name: str, operands: tuple[Expr, ...], result: str, message: str
) -> None:
    with pytest.raises(InstructionError, match=re.escape(message)):
        Instruction(name, operands, (), result)


TEXTS = {
    "sync_block []": instruction("sync_block"),
    "init_barrier [full[stage], 1]": instruction("init_barrier", FULL, Int(1)),
    "try_wait [full[stage], phase] predicate=(!landed)": instruction(
        "try_wait", FULL, Var("phase"), predicate=Unary("!", Var("landed"))
    ),
    "copy_async [tile[0], x[0], 4] modifiers=[dtype=f16, width=8]": instruction(
        "copy_async",
        Element("tile", (Int(0),)),
        Element("x", (Int(0),)),
        Int(4),
        dtype="f16",
        width=8,
    ),
    "test_wait [full[stage], 0] result=landed": instruction(
        "test_wait", FULL, Int(0), result="landed"
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_line_of_text_begins_with_its_name(text: str) -> None:
    assert print_ir(TEXTS[text]) == f"{text}\n"
    assert parse_ir(text, Instruction) == TEXTS[text]


def test_text_that_no_row_describes_is_located() -> None:
    with pytest.raises(IRTextError, match="line 1, column 1: wait_group takes pending"):
        parse_ir("wait_group []", Instruction)
    with pytest.raises(IRTextError, match="line 1, column 1: expected one of sync_block, "):
        parse_ir("wait []", Instruction)


@pytest.mark.parametrize("name", [row.name for row in INSTRUCTIONS.values() if not row.builtin])
def test_a_row_cites_the_instruction_of_its_device_function(name: str) -> None:
    functions = [one for one in device_functions.FUNCTIONS if one.file == name]
    cited = f"{INSTRUCTIONS[name].ptx}."
    assert functions
    for function in functions:
        mnemonics = instructions_of(function.text())
        assert any(f"{found}.".startswith(cited) for found in mnemonics), mnemonics
