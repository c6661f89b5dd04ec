"""Questions asked of lowered code."""

from __future__ import annotations

from gemmgen.ir.expr import Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.thread_code import Function, Invoke, executes


def test_a_function_that_is_called_is_part_of_the_code() -> None:
    function = Function("copy_A", "copies", (), (), (instruction("commit_group"),))
    body = (Invoke(function, (Var("A"),)),)
    assert executes(body, "commit_group") and not executes(body, "sync_block")
