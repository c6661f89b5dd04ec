"""Does a lowered program compute its problem?  It is run on small integers, and compared.

The operands are integers, so every order of summation gives the same bits; rows are padded, all
that may not be read is poison, and A and B never hold the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import lcm
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.formats import (
    STORAGE,
    UNIT,
    Real,
    Stored,
    bits,
    computing,
    held,
    numbers,
    poison,
    stored,
)
from gemmgen.interface import MultipleOf
from gemmgen.ir.dtypes import DType
from gemmgen.ir.evaluate import Bools, Floats, evaluate, rounds
from gemmgen.ir.expr import Binary, Element, Expr, Float, Var, children, transform, walk
from gemmgen.ir.interpret import Argument, Order, interpret, with_temporaries
from gemmgen.ir.landing import Landing, landings_of
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.memory import Elements, Trap, elements
from gemmgen.ir.nodes import Fact
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.reference import integers

SCALARS = {"alpha": 2.0, "beta": 3.0}
OTHERS = (5.0, -7.0, 11.0, -13.0)
"""Values of an epilogue's further scalars, in its order."""

RELATIVE, ABSOLUTE = 2.0**8, 2.0**4
"""How far a result that its type can't hold may lie off, in units of roundoff: of itself, and of
the greatest sum."""


@dataclass(frozen=True)
class Difference:
    """Where a program first goes wrong: ``row`` and ``column`` of C, None where no element is."""

    reason: str
    row: int | None = None
    column: int | None = None
    got: float | None = None
    want: float | None = None

    def text(self) -> str:
        if self.row is None:
            return self.reason
        place = f"C[{self.row}, {self.column}]"
        if self.got is None:
            return f"{place} {self.reason}"
        return f"{place} is {self.got!r}, should be {self.want!r} ({self.reason})"


@dataclass(frozen=True)
class Trial:
    """Matrices, as numbers, in their own letters' order, and scalars; ``reads_c`` False: C holds
    poison."""

    matrices: Mapping[str, Real]
    scalars: Mapping[str, float]
    reads_c: bool
    epilogue: Expr
    order: Order = "ascending"


def same_meaning(
    lowered: LoweredProgram,
    problem: Problem,
    facts: tuple[Fact, ...],
    shape: tuple[int, int, int],
    seed: int = 1,
) -> Difference | None:
    """The first difference between ``lowered`` and ``problem`` at ``shape`` (M, N, K), or None.

    Leading dimensions are chosen to satisfy the facts and the interfaces, with padding where they
    allow it; a shape that breaks one is a ``ValueError``.  Results that f32 can't hold exactly (of
    exp, of a division) may differ in the last bits.  Where C is read as ``beta * C`` alone, a
    second run has beta = 0 and poison in C.  What is copied asynchronously lands late and, in runs
    of their own, early.
    """
    letters = (problem.m, problem.n, problem.k)
    extents = {x.upper(): size for x, size in zip(letters, shape, strict=True)}
    pitches = _pitches(lowered, problem, facts, extents)
    landings = landings_of(lowered)
    for trial, landing in product(_trials(problem, extents, seed), landings):
        difference = _run(lowered, problem, trial, extents, pitches, landing)
        if difference is not None:
            return difference
    return None


# Operands.


def _trials(problem: Problem, extents: Mapping[str, int], seed: int) -> Iterator[Trial]:
    m, n, k = (extents[x.upper()] for x in (problem.m, problem.n, problem.k))
    inputs = integers(m, n, k, seed, problem.types)
    matrices = {
        problem.a.name: _in_order(inputs.a, problem.a, problem.m),
        problem.b.name: _in_order(inputs.b, problem.b, problem.k),
        problem.c.name: _in_order(inputs.c, problem.c, problem.m),
    }
    rng = np.random.default_rng([seed, 5])
    for tensor in _further_tensors(problem):
        sizes = tuple(extents[x.upper()] for x in tensor.letters)
        matrices[tensor.name] = rng.choice((-3, -1, 1, 3, 5), sizes).astype(np.float32)
    names = {e.name for e in walk(problem.epilogue) if isinstance(e, Var)}
    others = sorted(names - {"acc", *problem.c.letters, *SCALARS})
    scalars = SCALARS | {name: OTHERS[i % len(OTHERS)] for i, name in enumerate(others)}
    epilogue, c = problem.epilogue, problem.c.name
    yield Trial(matrices, scalars, _reads(epilogue, c), epilogue)
    if _reads(epilogue, c) and not _reads_unscaled(epilogue, c):
        without = _without(epilogue, c)
        yield Trial(matrices, scalars | {"beta": 0.0}, False, without, "descending")


def _in_order(matrix: Real, tensor: Tensor, rows: str) -> Real:
    return matrix if tensor.letters[0] == rows else np.ascontiguousarray(matrix.T)


def _further_tensors(problem: Problem) -> list[Tensor]:
    """Tensors of the epilogue beside C."""
    found = {
        e.buffer: Tensor(e.buffer, tuple(i.name for i in e.indices if isinstance(i, Var)))
        for e in walk(problem.epilogue)
        if isinstance(e, Element) and e.buffer != problem.c.name
    }
    return [found[name] for name in sorted(found)]


def _reads(expr: Expr, tensor: str) -> bool:
    return any(isinstance(e, Element) and e.buffer == tensor for e in walk(expr))


def _reads_unscaled(expr: Expr, tensor: str) -> bool:
    """Is ``tensor`` read anywhere but in ``beta * tensor``?"""
    match expr:
        case Binary("*", Var("beta"), Element(buffer, _)) if buffer == tensor:
            return False
        case Binary("*", Element(buffer, _), Var("beta")) if buffer == tensor:
            return False
        case Element(buffer, _):
            return buffer == tensor
        case _:
            return any(_reads_unscaled(part, tensor) for part in children(expr))


def _without(expr: Expr, tensor: str) -> Expr:
    """``expr`` with zeros for ``tensor``."""
    return transform(
        expr, lambda e: Float(0.0) if isinstance(e, Element) and e.buffer == tensor else None
    )


# Leading dimensions.


def _pitches(
    lowered: LoweredProgram,
    problem: Problem,
    facts: tuple[Fact, ...],
    extents: Mapping[str, int],
) -> dict[str, int]:
    """Per leading dimension its value: odd padding where nothing forbids it."""
    tensors = [problem.a, problem.b, problem.c, *_further_tensors(problem)]
    divisors = _divisors(lowered, facts)
    found: dict[str, int] = {}
    for tensor in tensors:
        if len(tensor.letters) == 2:
            name = "ld" + tensor.name.lower()
            by = divisors.get(name, 1)
            columns = extents[tensor.contiguous.upper()]
            found[name] = columns + 3 if by == 1 else (columns // by + 1) * by
    for fact in facts:
        if fact.equals is not None and fact.name in found:
            if fact.equals in found:
                found[fact.equals] = max(found[fact.name], found[fact.equals])
            found[fact.name] = (found | dict(extents))[fact.equals]
    values = with_temporaries(lowered, {**extents, **found})
    for kernel in lowered.kernels:
        addresses = {p.name: 0 for p in kernel.interface.params if p.kind == "tensor"}
        numbers = {n: v for n, v in values.items() if isinstance(v, int)} | addresses
        broken = kernel.interface.violated(numbers)
        if broken:
            said = ", ".join(requirement.text() for requirement in broken)
            raise ValueError(f"{dict(extents)} does not satisfy {said}")
    return found


def _divisors(lowered: LoweredProgram, facts: tuple[Fact, ...]) -> dict[str, int]:
    """What each name must be a multiple of."""
    found: dict[str, int] = {}
    wanted = [(fact.name, fact.divisor) for fact in facts if fact.divisor is not None]
    for kernel in lowered.kernels:
        required = kernel.interface.requirements
        wanted += [(r.name, r.divisor) for r in required if isinstance(r, MultipleOf)]
    for name, divisor in wanted:
        found[name] = lcm(found.get(name, 1), divisor)
    return found


def _places(shape: tuple[int, ...], pitch: int) -> npt.NDArray[np.int64]:
    """Where a tensor's elements lie in its flat memory."""
    if len(shape) == 1:
        return np.arange(shape[0])
    return np.arange(shape[0])[:, None] * pitch + np.arange(shape[1])


def _flat(matrix: Real, pitch: int, dtype: DType) -> Elements:
    """A flat memory that ends with the last element; poison between the rows."""
    places = _places(matrix.shape, pitch)
    memory = _raw(poison(int(places.max(initial=-1)) + 1, dtype), dtype)
    memory[places] = _raw(stored(matrix, dtype), dtype)
    return memory


def _raw(values: Stored, dtype: DType) -> Elements:
    """Stored elements as an interpreted memory holds them."""
    return cast(Elements, values.view(elements(dtype)))


# Running and comparing.


def _run(
    lowered: LoweredProgram,
    problem: Problem,
    trial: Trial,
    extents: Mapping[str, int],
    pitches: Mapping[str, int],
    landing: Landing,
) -> Difference | None:
    c = problem.c.name
    memories = {
        name: _flat(matrix, pitches.get("ld" + name.lower(), 0), problem.dtype(name))
        for name, matrix in trial.matrices.items()
    }
    if not trial.reads_c:
        memories[c] = _raw(poison(memories[c].size, problem.c.dtype), problem.c.dtype)
    before = {name: memory.copy() for name, memory in memories.items()}
    arguments: dict[str, Argument] = {**memories, **extents, **pitches, **trial.scalars}
    try:
        written = interpret(lowered, arguments, landing, trial.order)
    except Trap as trap:
        return Difference(str(trap))
    places = _places(trial.matrices[c].shape, pitches["ld" + c.lower()])
    for name, memory in memories.items():
        changed = bits(memory) != bits(before[name])
        if name == c:
            changed[places] = False
        if changed.any():
            what = "the padding of C" if name == c else f"the input {name}"
            return Difference(f"{what} is changed, at element {int(np.argmax(changed))}")
    return _compare(problem, trial, memories[c][places], written[c][places] != 0)


def _compare(problem: Problem, trial: Trial, memory: Elements, written: Bools) -> Difference | None:
    exact, computed, peak = _wanted(problem, trial)
    dtype, unit = problem.c.dtype, UNIT[problem.accumulate]
    got = numbers(memory.view(STORAGE[dtype]), dtype)
    rounded = held(computed, dtype)
    relative = RELATIVE * unit + (2 * UNIT[dtype] if dtype != problem.accumulate else 0)
    with np.errstate(all="ignore"):
        near = np.abs(got - exact) <= relative * np.abs(exact) + ABSOLUTE * unit * peak
    sure = ~np.isfinite(computed)
    if not any(rounds(e) for e in walk(trial.epilogue)):
        sure |= computed == exact
    equal = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    wrong = ~written | ~(equal | (~sure & near))
    if not wrong.any():
        return None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    row, column = place if problem.c.letters[0] == problem.m else place[::-1]
    if not written[place]:
        return Difference("is never written", row, column)
    zero_beta = not trial.reads_c and _reads(problem.epilogue, problem.c.name)
    reason = f"{int(wrong.sum())} wrong in all" + (", with beta = 0" if zero_beta else "")
    return Difference(reason, row, column, float(got[place]), float(rounded[place]))


def _wanted(problem: Problem, trial: Trial) -> tuple[npt.NDArray[np.float64], Real, float]:
    """The result in f64, in the sums' type rounded after each operation, and the greatest sum."""
    letters = problem.c.letters
    a = _in_order(trial.matrices[problem.a.name], problem.a, problem.m).astype(np.float64)
    b = _in_order(trial.matrices[problem.b.name], problem.b, problem.k).astype(np.float64)
    acc = a @ b if letters[0] == problem.m else (a @ b).T
    rows, columns = (np.arange(size, dtype=np.float64) for size in acc.shape)
    known = {letters[0]: rows[:, None], letters[1]: columns, "acc": acc}
    tensors = {
        tensor.name: _across(trial.matrices[tensor.name], tensor, letters)
        for tensor in (problem.c, *_further_tensors(problem))
    }

    def result(precision: type[np.float32] | type[np.float64]) -> Floats:
        names = {name: cast(Real, precision(value)) for name, value in trial.scalars.items()}
        names |= {name: cast(Real, value.astype(precision)) for name, value in known.items()}
        others = {name: cast(Floats, value.astype(precision)) for name, value in tensors.items()}
        with np.errstate(all="ignore"):
            value = evaluate(trial.epilogue, names, others, precision)
        return cast(Floats, np.broadcast_to(np.asarray(value), acc.shape))

    peak = float(np.abs(acc).max(initial=1))
    number = computing(problem.accumulate)
    return result(np.float64).astype(np.float64), result(number).astype(number), peak


def _across(matrix: Real, tensor: Tensor, letters: tuple[str, ...]) -> Real:
    """A tensor in a shape that broadcasts to C's."""
    if len(tensor.letters) == 1:
        return matrix[:, None] if tensor.letters[0] == letters[0] else matrix
    return matrix if tensor.letters == letters else matrix.T
