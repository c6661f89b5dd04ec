"""The declared IR as text: what is printed is read back, and what is wrong names its line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Select, Var
from gemmgen.ir.nodes import (
    AxisSpread,
    Bounds,
    Buffer,
    Contract,
    Copy,
    Fact,
    Init,
    Kernel,
    Loop,
    Map,
    Pipeline,
    Program,
    Space,
    Spread,
    Swizzle,
    Work,
)
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.ir.text import parse_program, print_program
from gemmgen.passes.build import build
from gemmgen.schedule.model import Epilogue, Schedule

from .samples import FAST, NAIVE, PROGRAMS, UNFUSED

BIASED = Call("relu", (Var("acc"),))
HARD_NAMES = (
    *("init", "loop", "raster", "width", "x", "by", "pipeline", "shared", "of", "spread"),
    *("bounds", "blocks", "unroll", "swizzle", "pad", "f32"),
)


def test_the_naive_program_prints_as_quoted():
    assert print_program(build(Schedule())) == NAIVE


def test_an_unfused_program_has_two_kernels():
    epilogue = Call("relu", (Binary("+", Var("acc"), Element("bias", (Var("n"),))),))
    assert print_program(build(Schedule(epilogue=Epilogue(epilogue)))) == UNFUSED


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_parsed_prints_the_same(name: str):
    program = parse_program(PROGRAMS[name])
    assert print_program(program) == PROGRAMS[name]
    assert parse_program(print_program(program)) == program


def test_every_line_of_a_program_matters():
    program = parse_program(FAST)
    lines = FAST.splitlines(keepends=True)
    for at in range(1, len(lines)):
        shorter = "".join(lines[:at] + lines[at + 1 :])
        with contextlib.suppress(ValueError):
            assert parse_program(shorter) != program, lines[at]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("pad=4", "pad=4.5", 11),
        ("init acc", "init", 16),
        ("order=serpentine", "order=", 23),
        ("relu(acc + bias[n]) width", "relu(acc + ) width", 24),
        ("      A_frag", "     A_frag", None),
    ],
)
def test_malformed_text_names_its_line(old: str, new: str, line: int | None):
    with pytest.raises(ValueError, match=f"line {line}" if line else "indent|line"):
        parse_program(FAST.replace(old, new))


names = st.sampled_from(("A", "B", "C", "tile_1", *HARD_NAMES))
sizes = st.integers(1, 4096)
origins = st.lists(
    st.sampled_from(("tile m=8 n=8", "fuse_epilogue relu(acc + bias[n])", "pad A by=4")),
    max_size=3,
).map(tuple)


def expressions() -> st.SearchStrategy[Expr]:
    bias = Element("bias", (Var("n"),))
    simple = st.sampled_from((Var("acc"), BIASED, bias, Float(2.0), Float(0.1)))
    condition = Call("min", (Var("acc"), bias))
    return st.one_of(simple, simple.map(lambda e: Call("max", (e, condition))), simple.map(_where))


def _where(value: Expr) -> Expr:
    return Select(Binary("<=", Var("width"), value), value, Float(0.0))


@st.composite
def buffers(draw: st.DrawFn, name: str) -> Buffer:
    letters = tuple(draw(st.lists(names, min_size=1, max_size=2, unique=True)))
    space = draw(st.sampled_from((Space.SHARED, Space.REGISTER)))
    swizzle = draw(st.none() | st.builds(Swizzle, *(st.sampled_from((2, 4, 8)),) * 3))
    layout = (draw(st.integers(0, 8)), draw(st.integers(1, 4)), swizzle)
    shape = tuple((letter, draw(sizes)) for letter in letters)
    axes = tuple(AxisSpread(x, *(draw(sizes) for _ in range(4))) for x in letters)
    atom: Atom = draw(st.sampled_from(tuple(ATOMS)))
    spread = Spread(axes, letters[0], atom) if draw(st.booleans()) else None
    return Buffer(name, space, "f32", shape, *layout, spread, draw(origins))


copies = st.builds(
    Copy,
    st.sampled_from(HARD_NAMES),
    names,
    st.sampled_from((1, 2, 4)),
    st.just("registers"),
    origins,
)
atoms = st.sampled_from(("fma", "wmma"))
orders = st.sampled_from(("rows", "serpentine", "zigzag"))
contracts = st.builds(Contract, names, names, names, orders, atoms, origins)
operations = st.lists(copies | contracts, min_size=1, max_size=3).map(tuple)
loops = st.builds(Loop, names, operations, st.integers(0, 8), origins, st.sampled_from((1, 16)))
pipelines = st.builds(
    Pipeline,
    names,
    sizes,
    st.lists(copies, max_size=2).map(tuple),
    st.lists(loops, min_size=1, max_size=2).map(tuple),
    st.integers(1, 8),
    st.sampled_from(("last", "first")),
    origins,
)
widths = st.sampled_from((1, 2, 4))
through = st.sampled_from((None, "acc_shared"))
maps = st.builds(Map, st.just("OUT"), expressions(), widths, origins, through)
statements = st.one_of(st.builds(Init, names), copies, contracts, loops, pipelines, maps)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    m, n, k = draw(st.lists(names, min_size=3, max_size=3, unique=True))
    c, a, b = Tensor("OUT", (n, m)), Tensor("L", (k, m)), Tensor("R", (n, k))
    out = Buffer("OUT", Space.GLOBAL, "f32", ((n, None), (m, None)))
    tiles = tuple(draw(buffers(name)) for name in draw(st.lists(names, max_size=3, unique=True)))
    work = Work(
        ((m, draw(sizes)), (n, draw(sizes))),
        draw(st.integers(1, 8)),
        draw(st.integers(1, 8)),
        draw(st.sampled_from(("ordered", "atomic"))),
        draw(st.integers(1, 8)),
        draw(origins),
    )
    body = tuple(draw(st.lists(statements, max_size=4)))
    facts = draw(st.lists(st.sampled_from((Fact("N", 4), Fact("lda", equals="K")))).map(tuple))
    problem = Problem(c, a, b, m, n, k, draw(expressions()))
    bounds = draw(st.just(Bounds()) | st.builds(Bounds, st.integers(1, 32), origins))
    return Program(problem, "sm_80", (Kernel("kernel", work, (out, *tiles), body, bounds),), facts)


@given(programs())
def test_any_program_round_trips(program: Program):
    assert parse_program(print_program(program)) == program
