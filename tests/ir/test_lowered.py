"""Questions asked of lowered code."""

from __future__ import annotations

from gemmgen.ir.control import Barrier, Commit
from gemmgen.ir.expr import Var
from gemmgen.ir.thread_code import Function, Invoke, contains


def test_a_function_that_is_called_is_part_of_the_code() -> None:
    function = Function("copy_A", "copies", (), (), (Commit(),))
    body = (Invoke(function, (Var("A"),)),)
    assert contains(body, Commit) and not contains(body, Barrier)
