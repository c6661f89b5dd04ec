"""The interpreter's rules: what an expression means, which threads take part, and what traps."""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt
import pytest

from gemmgen.interpreter.interpret import Trap, interpret
from gemmgen.ir.control import Assign, Block, Break, Define, For, If
from gemmgen.ir.expr import Call, Element, Expr, Float, Int, Select, Unary, Var, Wide
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Leave, Move, Node, RegisterArray
from gemmgen.numerics.operators import FUNCTIONS

from .kernels import BLOCK, X, Y, naive, of, tiled

F32 = npt.NDArray[np.float32]
NAN = float("nan")
PARAMS = (
    Param("M", "extent"),
    Param("scale", "scalar"),
    Param("x", "tensor", ("m",)),
    Param("out", "tensor", ("m",), written=True),
)
ME = of("+", of("*", BLOCK, 4), X)


def out(index: Expr | int = ME) -> Element:
    return Element("out", (of("+", index),))


def run(
    *body: Node,
    x: list[float] | None = None,
    size: int = 8,
    shared: tuple[SharedArray, ...] = (),
    block: tuple[int, int] = (4, 1),
) -> list[float]:
    """``out`` after a kernel of four threads a block and ``size`` elements."""
    interface = Interface("test", PARAMS, block, (("M", 4),), (), 0, 0, ())
    kernel = LoweredKernel(interface, (), (), shared, body, block[0] * block[1])
    written = np.full(size, NAN, np.float32)
    values = np.array(x if x is not None else range(size), np.float32)
    arguments = {"M": size, "scale": 0.5, "x": values, "out": written}
    interpret(LoweredProgram((kernel,)), arguments)
    return [float(v) for v in written]


def value(expr: Expr) -> float:
    """An expression's value, as a float."""
    return run(Assign(out(), Call("float", (expr,))), size=4)[0]


@pytest.mark.parametrize(
    ("expr", "want"),
    [
        (of("/", 7, 2), 3),
        (of("%", 7, 2), 1),
        (of("/", Float(7), Int(2)), 3.5),
        (of("-", 1, 3), -2),
        (of("+", Float(1e8), Float(1.0)), 1e8),
        (of("<", 1, 2), 1),
        (of("*", Int(3), Float(0.5)), 1.5),
        (Unary("-", of("*", 2, 3)), -6),
        (Unary("!", of("<", 1, 2)), 0),
        (Wide(of("+", "M", 1)), 5),
        (Select(of("<", "M", 3), Int(1), Float(2.5)), 2.5),
        (of("*", "scale", 3), 1.5),
        (Call("fmaf", (Float(3.0), Float(4.0), Float(5.0))), 17),
        (of("&&", of("<", 1, 2), of(">=", 1, 2)), 0),
        (of("||", of("<", 1, 2), of("==", 1, 2)), 1),
    ],
)
def test_expressions_mean_what_c_means(expr: Expr, want: float):
    assert value(expr) == want


def test_fmaf_rounds_once():
    product = (1 + 2.0**-12) ** 2
    fused = Call("fmaf", (Float(1 + 2.0**-12), Float(1 + 2.0**-12), Float(-1 - 2.0**-11)))
    assert value(fused) == product - 1 - 2.0**-11 == 2.0**-24


@pytest.mark.parametrize(
    ("function", "arguments", "want"),
    [
        ("relu", (-2.0,), 0.0),
        ("relu", (NAN,), NAN),
        ("min", (NAN, 1.0), NAN),
        ("min", (1.0, NAN), NAN),
        ("max", (1.0, NAN), NAN),
        ("max", (1.0, 2.0), 2.0),
        ("clamp", (NAN, 0.0, 1.0), NAN),
        ("clamp", (7.0, 0.0, 1.0), 1.0),
        ("round", (2.5,), 2.0),
        ("round", (-3.5,), -4.0),
        ("abs", (-3.0,), 3.0),
        ("sqrt", (2.0,), math.sqrt(2)),
        ("exp", (1.0,), math.e),
        ("erf", (0.5,), math.erf(0.5)),
        ("tanh", (0.5,), math.tanh(0.5)),
        ("sigmoid", (1.0,), 1 / (1 + math.exp(-1))),
        ("silu", (2.0,), 2 / (1 + math.exp(-2))),
        ("gelu", (1.0,), 0.5 * (1 + math.erf(1 / math.sqrt(2)))),
        ("gelu_tanh", (1.0,), 0.8411919906),
    ],
)
def test_functions_of_the_epilogue(function: str, arguments: tuple[float, ...], want: float):
    got = FUNCTIONS[function](*(np.float32(a) for a in arguments))
    assert got.dtype == np.float32
    assert float(got) == pytest.approx(want, rel=1e-6, nan_ok=True)
    expr = Call(function, tuple(Float(a) for a in arguments))
    assert value(expr) == pytest.approx(want, rel=1e-6, nan_ok=True)


def test_threads_and_blocks_have_their_numbers():
    place = of("+", of("*", of("+", of("*", BLOCK, 2), Y), 2), X)
    assert run(Assign(out(place), Call("float", (place,))), block=(2, 2)) == [*range(8)]


def test_only_the_chosen_side_reads():
    read = Element("x", (of("+", ME, 4),))
    guarded = Select(of("<", of("+", ME, 4), "M"), read, Float(-1.0))
    assert run(Assign(out(), guarded)) == [4, 5, 6, 7, -1, -1, -1, -1]
    with pytest.raises(Trap, match=r"x\[8\]: out of bounds of 8 elements, by block 1, thread"):
        run(Assign(out(), read))


def test_the_right_side_of_a_condition_reads_only_where_it_matters():
    positive = of(">", Element("x", (of("+", ME, 4),)), Float(4.0))
    both = of("&&", of("<", of("+", ME, 4), "M"), positive)
    chosen = Assign(out(), Select(both, Float(1.0), Float(0.0)))
    assert run(chosen) == [0, 1, 1, 1, 0, 0, 0, 0]


def test_branches_run_in_their_threads_alone():
    even = of("==", of("%", X, 2), 0)
    branch = If(even, (Assign("v", Float(1.0)),), (Assign("v", of("*", "v", 3)),))
    define = Define("v", Float(2.0), "float", mutable=True)
    assert run(define, branch, Assign(out(), Var("v"))) == [1, 6] * 4


def test_a_thread_that_left_does_nothing():
    stays_out = Leave(of(">=", ME, 5))
    assert run(stays_out, Assign(out(), Float(1.0)))[:5] == [1] * 5
    assert all(math.isnan(v) for v in run(stays_out, Assign(out(), Float(1.0)))[5:])
    step = (Assign(out(), Call("float", (Var("i"),))), Leave(of("==", "i", X)))
    assert run(For("i", Int(0), Int(9), Int(1), step)) == [0, 1, 2, 3] * 2


def test_a_loop_that_is_left_is_left_until_the_next_time():
    """Blocks leave at different trips; all of them continue after the loop."""
    count = Assign("v", of("+", "v", 1))
    inner = For("j", Int(0), Int(5), Int(1), (Break(of(">", "j", BLOCK)), count))
    outer = For("i", Int(0), Int(3), Int(1), (inner,))
    body = (Define("v", Int(0), mutable=True), outer, count)
    assert run(*body, Assign(out(), Call("float", (Var("v"),)))) == [4] * 4 + [7] * 4


def test_loops_count_as_written():
    total = Define("v", Int(0), mutable=True)
    add = Assign("v", of("+", "v", "i"))
    body = (total, For("i", Int(1), Int(10), Int(3), (add,)))
    assert run(*body, Assign(out(), Call("float", (Var("v"),)))) == [12] * 8


def test_loop_bounds_may_differ_between_blocks():
    total = Define("v", Int(0), mutable=True)
    loop = For("i", Int(0), of("+", BLOCK, 1), Int(1), (Assign("v", of("+", "v", 1)),))
    assert run(total, loop, Assign(out(), Call("float", (Var("v"),)))) == [1] * 4 + [2] * 4


def test_inner_names_hide_outer_ones():
    inner = Block("", (), (Define("v", Float(2.0), "float"),), scoped=True)
    assert run(Define("v", Float(1.0), "float"), inner, Assign(out(), Var("v"))) == [1] * 8


def test_a_block_without_braces_shares_its_names():
    block = Block("a note", (), (Define("v", Float(2.0), "float"),))
    assert run(block, Assign(out(), Var("v"))) == [2] * 8


def test_a_variable_keeps_its_value_when_the_register_changes():
    registers = RegisterArray("r", "f32", (Int(1),), (1,), zero=True)
    r = Element("r", (Int(0),))
    body = (registers, Define("v", r, "float"), Assign(r, Float(5.0)), Assign(out(), Var("v")))
    assert run(*body) == [0] * 8


def test_registers_and_shared_memory_are_poisoned():
    registers = RegisterArray("r", "f32", (Int(2),), (2,))
    assert all(map(math.isnan, run(registers, Assign(out(), Element("r", (Int(1),))))))
    shared = SharedArray("s", "f32", (Int(4),), (4,))
    read = Assign(out(), Element("s", (X,)))
    assert all(map(math.isnan, run(read, shared=(shared,))))


def test_indices_are_flattened_as_c_does():
    shared = SharedArray("s", "f32", (Int(2), Int(3)), (2, 3))
    write = Assign(Element("s", (Int(0), of("+", X, 2))), Call("float", (X,)))
    read = Assign(out(), Element("s", (Int(1), of("-", X, 1))))
    assert run(write, read, shared=(shared,)) == [0, 1, 2, 3] * 2


def test_blocks_have_shared_memory_of_their_own():
    shared = SharedArray("s", "f32", (Int(1),), (1,))
    write = If(of("==", X, 0), (Assign(Element("s", (Int(0),)), Call("float", (BLOCK,))),))
    read = Assign(out(), Element("s", (Int(0),)))
    assert run(write, read, shared=(shared,)) == [0] * 4 + [1] * 4


def test_a_register_array_may_be_one_element():
    registers = RegisterArray("r", "f32", (), ())
    r = Element("r", ())
    assert run(registers, Assign(r, Float(3.0)), Assign(out(), r)) == [3] * 8


def test_a_wide_move_moves_neighbours():
    registers = RegisterArray("r", "f32", (Int(4),), (4,), wide=True)
    first = Element("r", (Int(0),))
    fetch = If(of("==", X, 0), (Move(first, Element("x", (of("*", BLOCK, 4),)), 4),))
    store = If(of("==", X, 0), (Move(out(of("*", BLOCK, 4)), first, 4),))
    assert run(registers, fetch, store) == [*range(8)]


SHARED = SharedArray("s", "f32", (Int(2), Int(4)), (2, 4))
REGISTERS = RegisterArray("r", "f32", (Int(4),), (4,), wide=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Assign(out(of("+", ME, 1)), Float(1.0)),), r"out\[8\]: out of bounds"),
        ((Assign(out(of("-", ME, 1)), Float(1.0)),), r"out\[-1\]: out of bounds"),
        ((Assign(Element("s", (Int(1), of("+", X, 1))), Float(1.0)),), r"s\[8\]: out of bounds"),
        ((REGISTERS, Assign(Element("r", (Int(4),)), Float(1.0))), r"r\[4\]: out of bounds"),
        ((REGISTERS, Assign(Element("r", (of("+", X, 1),)), Float(1.0))), r"r\[4\]: out of"),
        ((REGISTERS, Move(Element("r", (Int(0),)), Element("x", (ME,)), 2)), r"x\[1\]: misal"),
        ((REGISTERS, Move(Element("r", (Int(1),)), Element("x", (Int(0),)), 2)), r"r\[1\]: mis"),
        ((Assign(out(0), Float(1.0)),), r"out\[0\]: written by two threads"),
        (
            (Assign(out(), Float(1.0)), Assign(out(of("-", 7, ME)), Float(1.0))),
            r"out\[7\]: written by two threads, by block 0, thread \(0, 0\)",
        ),
        (
            (Assign(out(), Float(1.0)), Define("v", out(of("-", 7, ME)), "float")),
            r"out\[7\]: read what another thread wrote",
        ),
    ],
)
def test_what_a_thread_may_not_do_traps(body: tuple[Node, ...], message: str):
    with pytest.raises(Trap, match=message):
        run(*body, shared=(SHARED,))


def test_an_undeclared_name_is_a_bug_of_the_lowering():
    with pytest.raises(KeyError, match="missing"):
        run(Assign(out(), Var("missing")))


def test_an_index_is_an_integer():
    with pytest.raises(AssertionError, match="an index of x is a float"):
        run(Assign(out(), Element("x", (of("*", X, Float(1.0)),))))


@pytest.mark.parametrize("kernel", [naive(), tiled()], ids=["naive", "tiled"])
def test_many_blocks_run_in_reasonable_time(kernel: LoweredKernel):
    m, n, k = 256, 256, 20
    arguments = {
        **{"M": m, "N": n, "K": k, "lda": k, "ldb": n, "ldc": n, "alpha": 1.0, "beta": 0.0},
        **{"A": np.ones(m * k, np.float32), "B": np.ones(k * n, np.float32)},
        "C": np.full(m * n, NAN, np.float32),
    }
    start = time.perf_counter()
    interpret(LoweredProgram((kernel,)), arguments)
    assert np.all(arguments["C"] == k)
    assert time.perf_counter() - start < 2
