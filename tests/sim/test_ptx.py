"""From ``asm`` statements to calls of models: what is understood, and what is refused."""

from __future__ import annotations

import re

import pytest
from functions import FUNCTIONS, name_of

from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.ptx import translated


def model(statement: str) -> str:
    """The calls of a statement, without what binds its operands."""
    text = translated(statement, 1)
    return " ".join(re.findall(r"gg_ptx::(?!in_|out_)\w+\([^;]*;", text))


@pytest.mark.parametrize("text", [f for f in FUNCTIONS if "asm" in f], ids=name_of)
def test_every_function_has_a_model_and_keeps_its_lines(text: str) -> None:
    got = translated(text, 1)
    assert "asm" not in got and got.count("\n") == text.count("\n")
    assert got.startswith(text[: text.index("asm")])
    assert got.endswith(text.rpartition(");")[2])


def test_operands_go_where_the_template_has_them() -> None:
    statement = 'asm volatile("red.relaxed.gpu.add.f32 [%1], %0;" :: "f"(x), "l"(p) : "memory");'
    assert model(statement) == "gg_ptx::red_relaxed_gpu_add_f32(gg_ptx::address(gg_1), gg_0);"


def test_blocks_registers_vectors_and_constants() -> None:
    statement = (
        'asm volatile("{\\n.reg .b32 a, b;\\nmov.b64 {a, b}, %1;\\n" '
        '"shfl.sync.up.b32 a, b, 3, 0x1f, 0xffffffff;\\nmov.b64 %0, {b, a};\\n}" '
        ': "=d"(x) : "d"(y));'
    )
    assert model(statement) == (
        "gg_ptx::mov_b64(gg_ptx::vector(gg_a, gg_b), gg_1); "
        "gg_ptx::shfl_sync_up_b32(gg_a, gg_b, gg_ptx::Immediate<3>(), gg_ptx::Immediate<0x1f>(), "
        "gg_ptx::Immediate<0xffffffff>()); "
        "gg_ptx::mov_b64(gg_0, gg_ptx::vector(gg_b, gg_a));"
    )


def test_constants_may_be_expressions() -> None:
    statement = 'asm volatile("cp.async.wait_group %0;" :: "n"(2 * pending + 1) : "memory");'
    assert (
        model(statement) == "gg_ptx::cp_async_wait_group(gg_ptx::Immediate<(2 * pending + 1)>());"
    )


WRONG = {
    'asm("cp.async.commit_group;" ::: "memory");': "does more than compute its outputs",
    'asm volatile("cp.async.commit_group;");': "touches memory",
    'asm volatile("cp.async.commit_group" ::: "memory");': "does not end with a semicolon",
    'asm("mov.b32 %0, {%1, %3};" : "=f"(x) : "h"(a), "h"(b));': "%3 is not an operand",
    'asm("mov.b32 %1, {%2, %2};" : "=f"(x) : "f"(a), "h"(b));': "is written, and is not output",
    'asm("cvt.f32.f16 %0, %1;" : "=f"(x), "=h"(a));': 'is read, and is constrained by "="',
    'asm("cvt.f32.f16 %0, %2;" : "=f"(x), "=f"(y) : "h"(a));': "an output that nothing writes",
    'asm("mov.b32 %0, {%1, %1}; mov.b32 %0, {%2, %2};" : "=f"(x) : "h"(a), "h"(b));': '"=&"',
    'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "q"(a));': "a constraint and an expression",
    'asm("cvt.f32.f16 %0, %1;" : "f"(x) : "h"(a));': "is constrained as an input",
    'asm("@p cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(a));': "is not understood from '@p",
    'asm goto("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(a));': "begins with asm",
    "asm volatile(text : : );": "string literals",
    'asm("{ mov.b32 %0, {%1, %1};" : "=f"(x) : "h"(a));': "is not closed",
    'asm("mov.b32 %0 {%1, %1};" : "=f"(x) : "h"(a));': "parted by commas",
}


@pytest.mark.parametrize("statement", WRONG)
def test_what_no_run_would_show_is_refused(statement: str) -> None:
    with pytest.raises(CompileFailure, match=f"line 7: .*{re.escape(WRONG[statement])}"):
        translated(statement, 7)
