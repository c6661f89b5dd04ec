"""The machine that watches: what is computed on it, what is left out, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from gemmgen.analyze.accesses import Site
from gemmgen.analyze.recorder import Recorder, record_accesses
from gemmgen.analyze.watched_memory import Watch
from gemmgen.interpreter.node_table import NODES, code_for
from gemmgen.interpreter.scope import UNKNOWN
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir import thread_code
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Element,
    Expr,
    Float,
    Int,
    Select,
    Var,
    walk,
)
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import INSTRUCTIONS, NO_VALUE
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Move, Node, RegisterArray

X = Var("threadIdx.x")
PARAMS = (
    Param("M", "extent"),
    Param("scale", "scalar"),
    Param("x", "tensor", ("m",)),
    Param("out", "tensor", ("m",), written=True),
)
R = RegisterArray("r", "f32", (Int(4),), (4,), wide=True)
S = SharedArray("s", "f32", (Int(8),), (8,))
VALUES: Mapping[str, int | float] = {"M": 4, "scale": 0.5}


def of(op: BinaryOp, left: Expr | str, right: Expr | int | str) -> Expr:
    first, second = (Var(e) if isinstance(e, str) else e for e in (left, right))
    return Binary(op, first, Int(second) if isinstance(second, int) else second)


def kernel(*body: Node) -> LoweredKernel:
    interface = Interface("test", PARAMS, (4, 1), (("M", 4),), (), 0, 0, ())
    return LoweredKernel(interface, (), (), (S,), body, 4)


def x(index: Expr = X) -> Element:
    return Element("x", (index,))


def r(index: int = 0) -> Element:
    return Element("r", (Int(index),))


def accesses(*body: Node) -> list[tuple[str, str, int]]:
    """Buffer, direction and width of each access, in order."""
    found: list[tuple[str, str, int]] = []

    def see(site: Site, index: Index, mask: Mask) -> None:
        found.append((site.buffer, "write" if site.write else "read", site.width))

    record_accesses(kernel(*body), np.zeros(1, np.int64), VALUES, see)
    return found


def test_every_kind_of_statement_has_one_function() -> None:
    kinds = {getattr(kind, "__origin__", kind) for kind in thread_code.Node.__args__}
    named = {name for name, row in INSTRUCTIONS.items() if row.effect not in NO_VALUE}
    assert NODES.keys() == kinds - {Instruction} | named


def test_arithmetic_on_registers_is_left_out() -> None:
    product = Call("fmaf", (r(), r(1), r()))
    total = Define("total", Float(0.0), "float", mutable=True)
    body = (
        R,
        total,
        For("k", Int(0), Int(1 << 40), Int(1), (Assign(r(), product), Assign("total", product))),
    )
    code = code_for(Recorder(kernel(), Lanes(0, 1, 4, 1), np.zeros(1, np.int64), VALUES, watch()))
    assert code.kernel(kernel(*body)) is None


def watch() -> Watch:
    return Watch(lambda site, index, mask: None, lambda: None)


def test_what_an_expression_reads_is_shown_though_its_value_is_not_computed() -> None:
    read = Assign(r(), of("*", x(), "scale"))
    assert accesses(R, read, Assign(Element("out", (X,)), r())) == [
        ("x", "read", 1),
        ("out", "write", 1),
    ]


def test_wide_moves_are_one_access() -> None:
    body = (R, If(of("==", X, 0), (Move(r(), x(Int(0)), 4), Move(Element("s", (Int(0),)), r(), 4))))
    assert accesses(*body) == [("x", "read", 4), ("s", "write", 4)]


@pytest.mark.parametrize("condition", [of(">", r(), Float(0.0)), of(">", x(), Float(0.0))])
def test_a_choice_by_an_unknown_value_takes_both_sides(condition: Expr) -> None:
    reads = [("x", "read", 1)] if x() in walk(condition) else []
    both = [("s", "read", 1), ("out", "read", 1)]
    chosen = Select(condition, Element("s", (X,)), Element("out", (X,)))
    assert accesses(R, Define("v", chosen, "float")) == reads + both
    yes, no = (Assign(r(), Element(name, (X,))) for name in ("s", "out"))
    assert accesses(R, If(condition, (yes,), (no,))) == reads + both


def test_a_choice_by_a_known_value_takes_one_side() -> None:
    chosen = Select(of("<", "scale", Float(1.0)), x(), Element("s", (X,)))
    assert accesses(Define("v", chosen, "float")) == [("x", "read", 1)]
    assert accesses(R, If(of(">", "M", 8), (Assign(r(), x()),))) == []


def test_guards_leave_out_threads() -> None:
    seen: list[int] = []

    def see(site: Site, index: Index, mask: Mask) -> None:
        seen.append(4 if mask is None else int(mask.sum()))

    guarded = Select(of("<", of("+", X, 2), "M"), x(of("+", X, 2)), Float(0.0))
    record_accesses(kernel(R, Assign(r(), guarded)), np.zeros(1, np.int64), VALUES, see)
    assert seen == [2]


def test_accesses_belong_to_the_innermost_comment() -> None:
    notes: list[str] = []

    def see(site: Site, index: Index, mask: Mask) -> None:
        notes.append(site.note)

    read = Assign(r(), x())
    body = Block("outer", (), (read, Block("inner", ("tile",), (read,)), Block("", (), (read,))))
    record_accesses(kernel(R, body), np.zeros(1, np.int64), VALUES, see)
    assert notes == ["outer", "inner", "outer"]


def test_no_operator_takes_an_unknown_value() -> None:
    with pytest.raises(TypeError):
        UNKNOWN + 1  # type: ignore[operator]
