"""Does a lowered program compute its problem?  It is run on small integers, and compared.

The operands are integers, so every order of summation gives the same bits; rows are padded, all
that may not be read is poison, and A and B never hold the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import lcm
from typing import cast

import numpy as np
import numpy.typing as npt

from gemmgen.base.record import record
from gemmgen.interpreter.async_copies import Landing, landings_of
from gemmgen.interpreter.checked_memory import Elements, elements
from gemmgen.interpreter.epilogue import evaluate, rounds
from gemmgen.interpreter.interpret import Argument, Order, interpret, with_temporaries
from gemmgen.interpreter.operators import Bools, Floats
from gemmgen.interpreter.simt import Trap
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Binary, Element, Expr, Float, Var, children, transform, walk
from gemmgen.ir.interface import MultipleOf
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.nodes import Fact
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.numerics.axes import along, axes_of, in_roles, in_storage, sizes_of
from gemmgen.numerics.formats import (
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
from gemmgen.numerics.reference import batched, integers

SCALARS = {"alpha": 2.0, "beta": 3.0}
OTHERS = (5.0, -7.0, 11.0, -13.0)
"""Values of an epilogue's further scalars, in its order."""

RELATIVE, ABSOLUTE = 2.0**8, 2.0**4
"""How far a result that its type can't hold may lie off, in units of roundoff: of itself, and of
the greatest sum."""


@record
class Difference:
    """Where a program first goes wrong: ``place`` is a row and a column of C, behind the numbers of
    the matrix; empty where no element is."""

    reason: str
    place: tuple[int, ...] = ()
    got: float | None = None
    want: float | None = None

    def text(self) -> str:
        if not self.place:
            return self.reason
        place = f"C[{', '.join(map(str, self.place))}]"
        if self.got is None:
            return f"{place} {self.reason}"
        return f"{place} is {self.got!r}, should be {self.want!r} ({self.reason})"


@record
class Trial:
    """Tensors, as numbers, in their own letters' order, and scalars; ``reads_c`` False: C holds
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
    shape: tuple[int, ...],
    seed: int = 1,
) -> Difference | None:
    """The first difference between ``lowered`` and ``problem`` at ``shape`` (M, N, K, and the
    extents of the batches), or None.

    Leading dimensions and strides are chosen to satisfy the facts and the interfaces, with padding
    where they allow it; a shape that breaks one is a ``ValueError``.  Results that f32 can't hold
    exactly (of exp, of a division) may differ in the last bits.  Where C is read as ``beta * C``
    alone, a second run has beta = 0 and poison in C.  What is copied asynchronously lands late and,
    in runs of their own, early.
    """
    sizes = dict(zip(problem.letters, shape, strict=True))
    steps = _steps(lowered, problem, facts, sizes)
    landings = landings_of(lowered)
    for trial, landing in product(_trials(problem, sizes, seed), landings):
        difference = _run(lowered, problem, trial, sizes, steps, landing)
        if difference is not None:
            return difference
    return None


# Operands.  Sizes are by letter.


def _trials(problem: Problem, sizes: Mapping[str, int], seed: int) -> Iterator[Trial]:
    m, n, k = (sizes[x] for x in (problem.m, problem.n, problem.k))
    of_a, of_b = (sizes_of(problem.batch, t.letters, sizes) for t in (problem.a, problem.b))
    inputs = batched(integers, (m, n, k), of_a, of_b, seed, problem.types)
    matrices = {
        tensor.name: np.ascontiguousarray(
            in_storage(values, tensor.letters, axes_of(problem, tensor.name))
        )
        for tensor, values in (
            (problem.a, inputs.a),
            (problem.b, inputs.b),
            (problem.c, inputs.c),
        )
    }
    rng = np.random.default_rng([seed, 5])
    for tensor in _further_tensors(problem):
        shape = tuple(sizes[x] for x in tensor.letters)
        matrices[tensor.name] = rng.choice((-3, -1, 1, 3, 5), shape).astype(np.float32)
    names = {e.name for e in walk(problem.epilogue) if isinstance(e, Var)}
    others = sorted(names - {"acc", *problem.c.letters, *SCALARS})
    scalars = SCALARS | {name: OTHERS[i % len(OTHERS)] for i, name in enumerate(others)}
    epilogue, c = problem.epilogue, problem.c.name
    yield Trial(matrices, scalars, _reads(epilogue, c), epilogue)
    if _reads(epilogue, c) and not _reads_unscaled(epilogue, c):
        without = _without(epilogue, c)
        yield Trial(matrices, scalars | {"beta": 0.0}, False, without, "descending")


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


# Leading dimensions and strides.


def _steps(
    lowered: LoweredProgram,
    problem: Problem,
    facts: tuple[Fact, ...],
    sizes: Mapping[str, int],
) -> dict[str, int]:
    """Per leading dimension and stride its value: odd padding where nothing forbids it."""
    extents = {problem.extent(letter): size for letter, size in sizes.items()}
    tensors = [problem.a, problem.b, problem.c, *_further_tensors(problem)]
    divisors = _divisors(lowered, facts)
    found: dict[str, int] = {}
    for tensor in tensors:
        pitch = problem.pitch(tensor)
        if pitch is not None:
            found[pitch[1]] = _padded(sizes[tensor.contiguous], divisors.get(pitch[1], 1))
    for fact in facts:
        if fact.equals is not None and fact.name in found:
            if fact.equals in found:
                found[fact.equals] = max(found[fact.name], found[fact.equals])
            found[fact.name] = (found | extents)[fact.equals]
    for tensor in tensors:
        pitch = problem.pitch(tensor)
        span = found[pitch[1]] * sizes[pitch[0]] if pitch else sizes[tensor.contiguous]
        for letter, name in reversed(problem.strides(tensor).items()):
            found[name] = _padded(span, divisors.get(name, 1))
            span = found[name] * sizes[letter]
    values = with_temporaries(lowered, {**extents, **found})
    for kernel in lowered.kernels:
        addresses = {p.name: 0 for p in kernel.interface.params if p.kind == "tensor"}
        numbers = {n: v for n, v in values.items() if isinstance(v, int)} | addresses
        broken = kernel.interface.violated(numbers)
        if broken:
            said = ", ".join(requirement.text() for requirement in broken)
            raise ValueError(f"{extents} does not satisfy {said}")
    return found


def _padded(length: int, by: int) -> int:
    return length + 3 if by == 1 else (length // by + 1) * by


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


def _places(
    problem: Problem, tensor: Tensor, shape: tuple[int, ...], steps: Mapping[str, int]
) -> npt.NDArray[np.int64]:
    """Where a tensor's elements lie in its flat memory."""
    names = problem.strides(tensor)
    pitch = problem.pitch(tensor)
    names |= {pitch[0]: pitch[1]} if pitch else {}
    places = np.zeros((), np.int64)
    for letter, size in zip(tensor.letters, shape, strict=True):
        step = steps[names[letter]] if letter in names else 1
        places = places[..., None] + np.arange(size) * step
    return places


def _flat(matrix: Real, places: npt.NDArray[np.int64], dtype: DType) -> Elements:
    """A flat memory that ends with the last element; poison between the rows."""
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
    sizes: Mapping[str, int],
    steps: Mapping[str, int],
    landing: Landing,
) -> Difference | None:
    c = problem.c.name
    tensors = (problem.a, problem.b, problem.c, *_further_tensors(problem))
    places = {t.name: _places(problem, t, trial.matrices[t.name].shape, steps) for t in tensors}
    memories = {
        name: _flat(trial.matrices[name], at, problem.dtype(name)) for name, at in places.items()
    }
    if not trial.reads_c:
        memories[c] = _raw(poison(memories[c].size, problem.c.dtype), problem.c.dtype)
    before = {name: memory.copy() for name, memory in memories.items()}
    extents = {problem.extent(letter): size for letter, size in sizes.items()}
    arguments: dict[str, Argument] = {**memories, **extents, **steps, **trial.scalars}
    try:
        written = interpret(lowered, arguments, landing, trial.order)
    except Trap as trap:
        return Difference(str(trap))
    for name, memory in memories.items():
        changed = bits(memory) != bits(before[name])
        if name == c:
            changed[places[c]] = False
        if changed.any():
            what = "the padding of C" if name == c else f"the input {name}"
            return Difference(f"{what} is changed, at element {int(np.argmax(changed))}")
    return _compare(problem, trial, memories[c][places[c]], written[c][places[c]] != 0)


def _compare(problem: Problem, trial: Trial, memory: Elements, written: Bools) -> Difference | None:
    """``memory`` and ``written`` are C as it is stored."""
    axes, letters = axes_of(problem, problem.c.name), problem.c.letters
    written = in_roles(written, letters, axes)
    exact, computed, peak = _wanted(problem, trial)
    dtype, unit = problem.c.dtype, UNIT[problem.accumulate]
    got = in_roles(numbers(memory.view(STORAGE[dtype]), dtype), letters, axes)
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
    if not written[place]:
        return Difference("is never written", place)
    zero_beta = not trial.reads_c and _reads(problem.epilogue, problem.c.name)
    reason = f"{int(wrong.sum())} wrong in all" + (", with beta = 0" if zero_beta else "")
    return Difference(reason, place, float(got[place]), float(rounded[place]))


def _wanted(problem: Problem, trial: Trial) -> tuple[npt.NDArray[np.float64], Real, float]:
    """The result in f64, in the sums' type rounded after each operation, and the greatest sum; in
    their roles."""
    tensors = {
        tensor.name: in_roles(
            trial.matrices[tensor.name], tensor.letters, axes_of(problem, tensor.name)
        )
        for tensor in (problem.a, problem.b, problem.c, *_further_tensors(problem))
    }
    a, b = (tensors.pop(t.name).astype(np.float64) for t in (problem.a, problem.b))
    acc = a @ b
    axes = axes_of(problem, problem.c.name)
    known = {x: along(axes, x, size) for x, size in zip(axes, acc.shape, strict=True)}

    def result(precision: type[np.float32] | type[np.float64]) -> Floats:
        names = {name: cast(Real, precision(value)) for name, value in trial.scalars.items()}
        for name, value in {**known, "acc": acc}.items():
            names[name] = value.astype(precision)
        others = {name: value.astype(precision) for name, value in tensors.items()}
        with np.errstate(all="ignore"):
            value = evaluate(trial.epilogue, names, others, precision)
        return cast(Floats, np.broadcast_to(np.asarray(value), acc.shape))

    peak = float(np.abs(acc).max(initial=1))
    number = computing(problem.accumulate)
    return result(np.float64).astype(np.float64), result(number).astype(number), peak
