"""Interpret a lowered program, and compare its result with its problem.

The operands are integers, so every order of summation gives the same bits; rows are padded, all
that may not be read is poison, and A and B never hold the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gemmgen.base.record import record
from gemmgen.calling.dimensions import solve, values_of
from gemmgen.calling.inputs import drawn
from gemmgen.calling.launches import ORDERS, Case, Order
from gemmgen.interpreter.async_copies import landings_of
from gemmgen.interpreter.checked_memory import Elements, elements, poisoned
from gemmgen.interpreter.interpret import Argument, interpret
from gemmgen.interpreter.simt import Trap
from gemmgen.interpreter.warp_roles import roles_of
from gemmgen.ir.dtypes import INTEGERS
from gemmgen.ir.expr import Binary, Element, Expr, Var, walk
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.problem import Problem
from gemmgen.numerics.axes import axes_of, in_roles
from gemmgen.numerics.epilogue_values import evaluate, in_numpy
from gemmgen.numerics.formats import (
    F64,
    GREATEST,
    TINY,
    UNIT,
    Precision,
    Real,
    Stored,
    computing,
    held,
    wrapped,
)
from gemmgen.numerics.operators import Bools, Floats, Value
from gemmgen.numerics.reference import compare
from gemmgen.numerics.scales import scaled
from gemmgen.proof.jumps import MOVED, jump_bound
from gemmgen.proof.rare_paths import drop_rare_paths
from gemmgen.proof.rounded_epilogue import hides_c, is_continuous, rounds, variables
from gemmgen.sim.allocation import allocated, overwritten
from gemmgen.sim.poisoned_memory import EmbeddedView

RELATIVE, ABSOLUTE = 2.0**8, 2.0**4
"""The error bound of a result that its type can't represent, in units of roundoff: of itself, and
of the greatest sum, or number that an epilogue adds."""


@record
class Difference:
    """The first error of a program: ``index`` is a row and a column of C, after the batch indices;
    empty if the error concerns no element."""

    reason: str
    index: tuple[int, ...] = ()
    got: float | None = None
    want: float | None = None

    def text(self) -> str:
        if not self.index:
            return self.reason
        element = f"C[{', '.join(map(str, self.index))}]"
        if self.got is None:
            return f"{element} {self.reason}"
        return f"{element} is {self.got!r}, should be {self.want!r} ({self.reason})"


def same_meaning(lowered: LoweredProgram, problem: Problem, shape: Shape) -> Difference | None:
    """The first difference between ``lowered`` and ``problem`` at ``shape`` (M, N, K, and the
    extents of the batches), or None.

    A shape that violates a requirement of the interface is a ``ValueError``.  Results that f32
    can't represent (of exp, of a division) may differ in the last bits.
    """
    problem = problem.written
    for case in cases(lowered, problem, shape):
        found = result_of(lowered, problem, case)
        difference = found if isinstance(found, Difference) else _compare(problem, case, found)
        if difference is not None:
            return difference
    return None


def nearest(programs: Iterable[LoweredProgram], problem: Problem, shape: Shape) -> Shape:
    """``shape``, increased if one of ``programs`` requires it."""
    for lowered in programs:
        interface = _interface(lowered)
        names = [interface.extent(letter) for letter in problem.letters]
        values = solve(interface, dict(zip(names, shape, strict=True)), 0)
        shape = tuple(values[name] for name in names)
    return shape


def cases(lowered: LoweredProgram, problem: Problem, shape: Shape) -> Iterator[Case]:
    """Where C is read as ``beta * C`` alone, a second run has beta = 0 and poison in C.  What is
    copied asynchronously lands late and, in their own runs, early.  Warps with roles take their
    turns in every order.  Where elements are split, some are given that need all of their parts,
    and one that has none."""
    runs: list[tuple[float, Order]] = [(3.0, "ascending")]
    if hides_c(problem):
        runs.append((0.0, "descending"))
    if any(roles_of(kernel.body) for kernel in lowered.kernels):
        runs.extend((3.0, order) for order in ORDERS[1:])
    for (beta, order), landing in product(runs, landings_of(lowered)):
        yield Case(shape, "integers", 2.0, beta, 3, order, landing)
    if lowered.kernels[0].interface.arithmetic.products > 1:
        yield Case(shape, "wide integers", 2.0, 3.0, 3)
        yield Case(shape, "NaN in A", 2.0, 3.0, 3)


@record
class Result:
    """C after a run, in its roles, and the arguments of the run."""

    c: Stored
    tensors: Mapping[str, Real]
    scalars: Mapping[str, float]


def result_of(lowered: LoweredProgram, problem: Problem, case: Case) -> Result | Difference:
    """Runs ``lowered``; returns a difference if it violates a rule."""
    interface, name = _interface(lowered), problem.c.name
    lost = _named(problem) - {param.name for param in interface.params}
    if lost:
        return Difference(f"takes no {', '.join(sorted(lost))}")
    values, scalars = values_of(interface, case), case.scalars(interface)
    sizes = {interface.extent(x): n for x, n in zip(problem.letters, case.shape, strict=True)}
    broken = [name for name, size in sizes.items() if values[name] != size]
    if broken:
        required = (r.text() for r in interface.requirements if r.name in broken)
        raise ValueError(f"{sizes} does not satisfy {', '.join(required)}")
    given = drawn(interface, case)
    unread = {name} if hides_c(problem) and case.beta == 0.0 else set[str]()
    placed = allocated(interface, replace(case, tight=True), given, unread)
    c, before = placed[name], {each: matrix.view.copy() for each, matrix in placed.items()}
    memories = {each: _memory(matrix, each in unread) for each, matrix in placed.items()}
    if case.finite:
        lowered = drop_rare_paths(lowered)
    try:
        given_all: dict[str, Argument] = {**memories, **values, **scalars}
        found = interpret(lowered, given_all, case.landing, case.order, case.multiprocessors)
    except Trap as trap:
        return Difference(str(trap))
    for each, matrix in placed.items():
        _write_back(matrix, memories[each])
    harm = overwritten(placed, before, name)
    if harm is not None:
        return Difference(harm)
    letters, axes, written = problem.c.letters, axes_of(problem, name), found[name] != 0
    steps = tuple(step * written.itemsize for step in c.strides)
    reached = in_roles(as_strided(written, c.view.shape, steps), letters, axes)
    if not reached.all():
        index = tuple(int(i) for i in np.argwhere(~reached)[0])
        return Difference("is never written", index)
    if problem.c.dtype in INTEGERS:
        strides = tuple(step * memories[name].itemsize for step in c.strides)
        left = in_roles(as_strided(memories[name], c.view.shape, strides), letters, axes)
        if np.isnan(left).any():
            index = tuple(int(i) for i in np.argwhere(np.isnan(left))[0])
            return Difference("is computed from memory that was never written", index)
    given |= {each: np.zeros_like(given[each]) for each in unread}
    return Result(in_roles(c.view, letters, axes), given, scalars)


def _memory(matrix: EmbeddedView, unread: bool) -> Elements:
    """A tensor's memory from its first element on, as the interpreter holds it: of integers, which
    are held otherwise, what is not an element was never written."""
    kind = elements(matrix.dtype)
    if matrix.dtype not in INTEGERS:
        return cast(Elements, matrix.memory[matrix.start :].view(kind))
    found = poisoned(matrix.memory[matrix.start :].size, matrix.dtype)
    if not unread:
        steps = tuple(step * found.itemsize for step in matrix.strides)
        as_strided(found, matrix.view.shape, steps)[...] = matrix.view
    return found


def _write_back(matrix: EmbeddedView, held: Elements) -> None:
    """What the interpreter has left in a tensor's memory, where it holds integers."""
    if matrix.dtype in INTEGERS:
        own = matrix.memory[matrix.start :]
        own[...] = np.where(np.isnan(held), own, np.nan_to_num(held)).astype(own.dtype)


def _interface(lowered: LoweredProgram) -> Interface:
    """A program's interface: those of its kernels combined, without the tensors between them."""
    faces = [kernel.interface for kernel in lowered.kernels]
    params = {p.name: p for face in faces for p in face.params if p.name not in lowered.temporaries}
    return replace(
        faces[0],
        params=tuple(params.values()),
        requirements=tuple(dict.fromkeys(r for face in faces for r in face.requirements)),
        pitch=tuple(dict.fromkeys(p for face in faces for p in face.pitch)),
        equal=tuple(dict.fromkeys(e for face in faces for e in face.equal)),
        strides=tuple(dict.fromkeys(s for face in faces for s in face.strides)),
    )


def _named(problem: Problem) -> set[str]:
    """The tensors and scalars of a problem."""
    parts = tuple(walk(problem.epilogue))
    scalars = {e.name for e in parts if isinstance(e, Var)} - {"acc", *problem.c.letters}
    others = {e.buffer for e in parts if isinstance(e, Element)}
    scales = {scaling.tensor.name for scaling in problem.scales}
    return scalars | others | scales | {problem.a.name, problem.b.name, problem.c.name}


def _compare(problem: Problem, case: Case, found: Result) -> Difference | None:
    exact, computed, peak, whole, jumps = _wanted(problem, found)
    dtype, unit = problem.c.dtype, UNIT[problem.numbers]
    relative = RELATIVE * unit + (2 * UNIT[dtype] if dtype != problem.numbers else 0)
    stored = held(computed, dtype)
    sure = ~np.isfinite(stored)  # beyond f16, say, though the exact result is a number
    if not any(rounds(e) for e in walk(problem.epilogue)):
        sure |= (computed == exact) & whole
    if dtype in INTEGERS:
        sure |= np.isnan(exact)  # which a conversion makes a number
    if dtype in GREATEST:
        exact = np.clip(exact, *GREATEST[dtype])
    bound = relative * np.abs(exact) + ABSOLUTE * unit * peak + TINY[dtype]
    if not is_continuous(problem):  # round(), or a comparison, of what is rounded before
        with np.errstate(invalid="ignore"):
            bound += np.nan_to_num(np.abs(computed - exact), posinf=0.0) + jumps
    bound = np.where(sure, 0.0, bound)
    compared = compare(found.c, np.where(sure, stored, exact), bound, dtype)
    if compared.equal:
        return None
    zero_beta = case.beta == 0.0 and hides_c(problem)
    reason = f"{compared.differing} wrong in all" + (", with beta = 0" if zero_beta else "")
    return Difference(reason, compared.index, compared.got, compared.want)


def _wanted(problem: Problem, given: Result) -> tuple[F64, Real, float, Bools, F64]:
    """The result in f64, in the sums' type rounded after each operation, the greatest sum, or
    number that the epilogue adds, where no operation rounds, so that a text may fuse two, and how
    far a jump of the epilogue may be from the result; in their roles."""
    others = dict(given.tensors)
    a, b = (
        scaled(problem, t, others.pop(t.name).astype(np.float64), others)
        for t in (problem.a, problem.b)
    )
    for scaling in problem.scales:
        del others[scaling.tensor.name]
    acc = wrapped(a @ b) if problem.accumulate == "i32" else a @ b

    def result(
        precision: Precision, expr: Expr = problem.epilogue, moved: F64 | None = None
    ) -> Floats:
        names = variables(problem, acc, given.scalars, precision)
        if moved is not None:
            names[MOVED] = moved
        rounded: dict[str, Value] = {n: value.astype(precision) for n, value in others.items()}
        with np.errstate(all="ignore"):
            value = evaluate(expr, names, rounded, in_numpy(precision))
        return cast(Floats, np.broadcast_to(np.asarray(value), acc.shape))

    number = computing(problem.numbers)
    peak = float(np.abs(acc[np.isfinite(acc)]).max(initial=1.0))
    whole = np.ones(acc.shape, np.bool_)
    for e in (e for e in walk(problem.epilogue) if isinstance(e, Binary)):
        if e.op in {"+", "-"}:
            for operand in (result(np.float64, each) for each in (e.left, e.right)):
                peak = float(np.abs(operand[np.isfinite(operand)]).max(initial=peak))
        if e.op in {"+", "-", "*"}:
            with np.errstate(all="ignore"):
                value = result(np.float64, e)
                whole &= (value == value.astype(number)) | ~np.isfinite(value)
    exact = result(np.float64).astype(np.float64)
    still = whole & (not any(rounds(e) for e in walk(problem.epilogue)))
    unit = ABSOLUTE * UNIT[problem.numbers]
    jumps = jump_bound(problem, partial(result, np.float64), exact, unit, peak, still)
    return exact, result(number).astype(number), peak, whole, jumps
