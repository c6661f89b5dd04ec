"""One call of a kernel on the CPU: matrices in poisoned memory, run, and everything looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gemmgen import reference
from gemmgen.formats import Real, Stored, computing, held, stored
from gemmgen.interface import Param
from gemmgen.ir.build import problem_of
from gemmgen.ir.dtypes import Types
from gemmgen.ir.landing import LANDINGS, Landing
from gemmgen.ir.problem import Problem
from gemmgen.passes.async_copy import AsyncCopy
from gemmgen.pipeline import Emitted
from gemmgen.reference import Inputs
from gemmgen.schedule.roles import extent
from gemmgen.sim.memory import Matrix
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import CompiledKernel
from gemmgen.verify.epilogue import Wanted, hides_c, wanted
from gemmgen.verify.outcome import Shape
from gemmgen.verify.shapes import alignment, solve
from gemmgen.verify.sums import Summation

Data = Literal["integers", "normal", "permutation", "NaN in A", "infinity in B"]
Order = Literal["ascending", "descending", "shuffled"]
OTHER_SCALAR = 0.75
"""What scalars of an epilogue get, beyond alpha and beta."""

_MAKERS: Mapping[str, Callable[[int, int, int, int, Types], Inputs]] = {
    "integers": reference.integers,
    "permutation": reference.permutation,
}


@dataclass(frozen=True)
class Case:
    """Extents, numbers, and how it is run; rows are ``pad`` elements apart beyond their length."""

    shape: Shape
    data: Data = "integers"
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    order: Order = "ascending"
    landing: Landing = "late"

    def text(self) -> str:
        m, n, k = self.shape
        scaled = f"alpha={self.alpha:g} beta={self.beta:g}"
        padding = f", rows padded by {self.pad}" if self.pad else ""
        landing = ", copies landing early" if self.landing == "early" else ""
        return f"{m}x{n}x{k}, {self.data}, {scaled}{padding}, threads {self.order}{landing}"


def landings_of(emitted: Emitted) -> tuple[Landing, ...]:
    """When asynchronous copies may land: one is enough for a kernel that has none."""
    copies = any(d.name == AsyncCopy.SPEC.name for d in emitted.schedule.directives)
    return LANDINGS if copies else LANDINGS[:1]


class Caller:
    """Calls one kernel; the sums of inputs that come again are kept."""

    def __init__(self, emitted: Emitted):
        self.emitted = emitted
        self.problem = problem_of(emitted.schedule)
        self._summation = Summation.of(emitted.schedule)
        self._sums: dict[tuple[Shape, Data, Order], tuple[Inputs, Real]] = {}

    def complaint(self, case: Case, kernel: CompiledKernel) -> str | None:
        """What is wrong with the kernel's answer to ``case``, in words; None where nothing is.

        Raises ``KernelFailure`` where the run is stopped.
        """
        problem, params = self.problem, self.emitted.interface.params
        inputs, acc = self._inputs(case)
        names = [extent(letter) for letter in (problem.m, problem.n, problem.k)]
        sizes = dict(zip(names, case.shape, strict=True))
        values = solve(self.emitted, sizes, case.pad)
        scalars = _scalars(params, case)
        tensors = self._tensors(case, inputs, scalars)
        unread = hides_c(problem) and scalars["beta"] == 0.0
        placed = {
            p.name: self._place(p, tensors, values, unread=unread)
            for p in params
            if p.kind == "tensor"
        }
        before = {name: matrix.view.copy() for name, matrix in placed.items()}
        arguments: dict[str, Argument] = {**values, **scalars}
        arguments |= {p.name: _shaped(p, placed[p.name]) for p in params if p.kind == "tensor"}
        kernel.run(
            {p.name: arguments[p.name] for p in params if not p.is_scratch},
            order=case.order,
            landing=case.landing,
            seed=sum(case.shape),
            unreadable=(problem.c.name,) if unread else (),
        )
        result = placed[problem.c.name].view
        result = result if problem.c.letters[0] == problem.m else result.T
        empty = np.zeros(result.shape, computing(problem.accumulate))
        want = self._wanted(acc, tensors, scalars) if result.size else Wanted(empty, None)
        return _difference(problem, placed, before, result, want)

    def _inputs(self, case: Case) -> tuple[Inputs, Real]:
        """A (M, K), B (K, N), C (M, N), and the product of the first two."""
        order = case.order if self._summation.follows_blocks else "ascending"
        key = case.shape, case.data, order
        if key not in self._sums:
            m, n, k = case.shape
            usual = reference.normal
            if order == "shuffled":
                usual = reference.integers  # whose sums are the same in any order
            make = _MAKERS.get(case.data, usual)
            made = make(m, n, k, m + n + k, self.problem.types)
            if case.data == "NaN in A":
                made = Inputs(_marked(made.a, np.nan), made.b, made.c)
            if case.data == "infinity in B":
                made = Inputs(made.a, _marked(made.b, np.inf), made.c)
            acc = self._summation.sums(made.a, made.b, backwards=order == "descending")
            self._sums[key] = made, acc
        return self._sums[key]

    def _tensors(self, case: Case, inputs: Inputs, scalars: Mapping[str, float]) -> dict[str, Real]:
        """Every tensor as numbers, with rows and columns in the order of its roles."""
        problem, c = self.problem, inputs.c
        found = {problem.a.name: inputs.a, problem.b.name: inputs.b, problem.c.name: c}
        m, n, _ = case.shape
        for at, param in enumerate(self.emitted.interface.params):
            if param.kind == "tensor" and param.name not in found:
                sizes = [m if problem.m in param.indices else 1]
                sizes.append(n if problem.n in param.indices else 1)
                rng = np.random.default_rng([at, m, n])
                drawn = rng.integers(-5, 6, sizes) if case.data == "integers" else None
                values = rng.standard_normal(sizes) if drawn is None else drawn
                number = computing(problem.accumulate)
                found[param.name] = held(values, param.dtype).astype(number)
        return found

    def _place(
        self, param: Param, tensors: Mapping[str, Real], values: Mapping[str, int], *, unread: bool
    ) -> Matrix:
        """A tensor in its storage order; an output that may not be read was never written."""
        emitted = self.emitted
        rows = tensors[param.name]
        laid = rows.T if self._is_turned(param) else rows
        laid = laid.reshape(1, -1) if len(param.indices) == 1 else laid
        pitch = dict(emitted.interface.pitch).get(param.name)
        length = values[pitch] if pitch else laid.shape[1]
        step = alignment(emitted.interface, param.name)
        if param.written and (unread or not param.read):
            size = len(laid), laid.shape[1], length
            return Matrix.poisoned(*size, offset=step, dtype=param.dtype)
        elements = stored(laid, param.dtype)
        return Matrix.holding(elements, length, offset=step, dtype=param.dtype)

    def _is_turned(self, param: Param) -> bool:
        """Are the tensor's rows in memory the columns of its role?"""
        problem = self.problem
        first = {problem.a.name: problem.m, problem.b.name: problem.k}.get(param.name, problem.m)
        return len(param.indices) == 2 and param.indices[0] != first

    def _wanted(
        self, acc: Real, tensors: Mapping[str, Real], scalars: Mapping[str, float]
    ) -> Wanted:
        return wanted(self.problem, acc, tensors, scalars)


def _scalars(params: tuple[Param, ...], case: Case) -> dict[str, float]:
    given = {"alpha": case.alpha, "beta": case.beta}
    return {p.name: given.get(p.name, OTHER_SCALAR) for p in params if p.kind == "scalar"}


def _marked(values: Real, mark: float) -> Real:
    """``values`` with ``mark`` in the middle, if there is one."""
    rows, columns = values.shape
    if not values.size:
        return values
    return reference.placed(values, rows // 2, columns // 2, mark)


def _shaped(param: Param, matrix: Matrix) -> Stored:
    return matrix.view[0] if len(param.indices) == 1 else matrix.view


def _difference(
    problem: Problem,
    placed: Mapping[str, Matrix],
    before: Mapping[str, Stored],
    result: Stored,
    want: Wanted,
) -> str | None:
    for name, matrix in placed.items():
        touched = matrix.touched()
        if touched is not None:
            return f"{name}: {touched}"
        changed = matrix.changed(before[name]) if name != problem.c.name else None
        if changed is not None:
            return f"the input {name} was written to: {changed}"
    compared = reference.compare(result, want.value, want.bound, problem.c.dtype)
    return None if compared.equal else f"{problem.c.name}: {compared.text()}"
