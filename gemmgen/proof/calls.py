"""One call of a kernel on the CPU: matrices in poisoned memory, run, and everything looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from gemmgen.base.record import record
from gemmgen.calling.strides import bounds
from gemmgen.interpreter.async_copies import LANDINGS, Landing
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import Interface, Param
from gemmgen.ir.problem import Problem
from gemmgen.numerics import reference
from gemmgen.numerics.axes import axes_of, in_roles, in_storage, sizes_of
from gemmgen.numerics.formats import Real, Stored, computing, held, stored
from gemmgen.numerics.reference import Inputs
from gemmgen.passes.async_copy import AsyncCopy
from gemmgen.passes.build import problem_of
from gemmgen.pipeline import Emitted
from gemmgen.proof.epilogue import Wanted, hides_c, wanted
from gemmgen.proof.far import spread
from gemmgen.proof.layouts import Layout, lay_out, shared_letters
from gemmgen.proof.outcome import Shape, spelled
from gemmgen.proof.shapes import alignment, solve
from gemmgen.proof.sums import Summation
from gemmgen.sim.memory import EmbeddedView, Sparse
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import RUN_SECONDS, CompiledKernel

Data = Literal[
    "integers",
    "normal",
    "permutation",
    "NaN in A",
    "infinity in B",
    "infinities in A",
    "infinities in B",
]
"""The last two: all elements of one operand are infinite, and all of the other positive."""
Order = Literal["ascending", "descending", "shuffled"]
OTHER_SCALAR = 0.75
"""What scalars of an epilogue get, beyond alpha and beta."""
DENSE = 1 << 27
"""Elements that a tensor may span in memory that is there as a whole."""

_LAYOUTS = {"behind": "behind one another", "within": "row by row in turn", "shared": "shared"}

_MAKERS: Mapping[str, reference.Maker] = {
    "integers": reference.integers,
    "permutation": reference.permutation,
    "infinities in A": reference.positive,
    "infinities in B": reference.positive,
}


@record
class Case:
    """Extents, numbers, and how it is run; rows are ``pad`` elements apart beyond their length.

    ``watched``: each access is looked at.  ``far``: rows and matrices lie so far apart that offsets
    are no ints.  ``skips_product``: where alpha is 0 the call is made by ``Interface.product``'s
    rule, with K = 0 and inputs that may not be read; else the kernel runs with all of K.
    """

    shape: Shape
    data: Data = "integers"
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    order: Order = "ascending"
    landing: Landing = "late"
    layout: Layout = "behind"
    watched: bool = True
    far: bool = False
    skips_product: bool = False

    def text(self) -> str:
        scaled = f"alpha={self.alpha:g} beta={self.beta:g}"
        padding = f", rows padded by {self.pad}" if self.pad else ""
        padding = ", rows 2^30 elements apart" if self.far else padding
        batches = f", matrices {_LAYOUTS[self.layout]}" if len(self.shape) > 3 else ""
        landing = ", copies landing early" if self.landing == "early" else ""
        told = f"{spelled(self.shape)}, {self.data}, {scaled}{padding}{batches}"
        skipped = ", K = 0 as alpha is" if self.skips_product else ""
        return f"{told}, threads {self.order}{landing}{skipped}"


def landings_of(emitted: Emitted) -> tuple[Landing, ...]:
    """When asynchronous copies may land: one is enough for a kernel that has none."""
    copies = any(d.name == AsyncCopy.SPEC.name for d in emitted.schedule.directives)
    return LANDINGS if copies else LANDINGS[:1]


class Caller:
    """Calls one kernel; the sums of inputs that come again are kept."""

    def __init__(self, emitted: Emitted):
        self.emitted = emitted
        self.problem = problem_of(emitted.schedule)
        self._summation = Summation.of(emitted.program)
        self._sums: dict[tuple[Shape, Data, Order, bool], tuple[Inputs, Real]] = {}

    def complaint(
        self, case: Case, kernel: CompiledKernel, seconds: float = RUN_SECONDS
    ) -> str | None:
        """What is wrong with the kernel's answer to ``case``, in words; None where nothing is.

        Raises ``KernelFailure`` where the run is stopped, as after ``seconds``.
        """
        problem, interface = self.problem, self.emitted.interface
        params = interface.params
        inputs, acc = self._inputs(case)
        values, scalars = self._values(case), _scalars(params, case)
        tensors = self._tensors(case, inputs)
        unread = {problem.c.name} if hides_c(problem) and scalars["beta"] == 0.0 else set[str]()
        skips_product = case.skips_product and interface.skips_product(scalars)
        if skips_product:
            acc = np.zeros_like(acc)
            unread |= {p.name for p in params if interface.is_factor(p)}
        placed = {
            p.name: self._place(p, tensors, values, unread=p.name in unread)
            for p in params
            if p.kind == "tensor"
        }
        before = {name: matrix.view.copy() for name, matrix in placed.items()}
        arguments: dict[str, Argument] = {**values, **scalars}
        arguments |= {name: matrix.view for name, matrix in placed.items()}
        kernel.run(
            {p.name: arguments[p.name] for p in params if not p.is_scratch},
            order=case.order,
            landing=case.landing,
            seed=sum(case.shape),
            seconds=seconds,
            unreadable=tuple(sorted(unread)),
            skips_product=skips_product,
        )
        c = problem.c
        result = in_roles(placed[c.name].view, c.letters, axes_of(problem, c.name))
        empty = np.zeros(result.shape, computing(problem.accumulate))
        want = wanted(problem, acc, tensors, scalars) if result.size else Wanted(empty, None)
        return _difference(problem, placed, before, result, want)

    def span(self, case: Case) -> int:
        """Bytes from the first element to the last of all tensors, what lies between included."""
        values, interface = self._values(case), self.emitted.interface
        found = 0
        for param in interface.params:
            if param.kind == "tensor":
                low, high = bounds(*_laid_out(interface, param, values))
                found += (high - low) * BYTES[param.dtype]
        return found

    def _values(self, case: Case) -> dict[str, int]:
        """Extents, leading dimensions and strides of a call."""
        names = [self.problem.extent(letter) for letter in self.problem.letters]
        values = solve(self.emitted, dict(zip(names, case.shape, strict=True)), case.pad)
        if case.far:
            return spread(self.emitted, values)
        return lay_out(self.emitted, values, case.pad, case.layout)

    def _inputs(self, case: Case) -> tuple[Inputs, Real]:
        """A, B and C in their roles, and the product of the first two, of C's shape."""
        order = case.order if self._summation.follows_blocks else "ascending"
        shared = case.layout == "shared"
        key = case.shape, case.data, order, shared
        if key not in self._sums:
            problem, (m, n, k, *batches) = self.problem, case.shape
            there = (1 for _ in batches) if shared else batches
            sizes = dict(zip(problem.batch, there, strict=True))
            of_a, of_b = (sizes_of(problem.batch, t.letters, sizes) for t in (problem.a, problem.b))
            usual = reference.normal
            if order == "shuffled":
                usual = reference.integers  # whose sums are the same in any order
            make, types = _MAKERS.get(case.data, usual), problem.types
            made = reference.batched(make, (m, n, k), of_a, of_b, m + n + k, types)
            if shared:  # but each C is one's own
                apart, one = tuple(batches), (1,) * len(batches)
                c = reference.batched(make, (m, n, 0), apart, one, m + n, types).c
                made = Inputs(made.a, made.b, c)
            if case.data == "NaN in A":
                made = Inputs(_marked(made.a, np.nan), made.b, made.c)
            if case.data == "infinity in B":
                made = Inputs(made.a, _marked(made.b, np.inf), made.c)
            if case.data == "infinities in A":
                made = Inputs(np.full_like(made.a, np.inf), made.b, made.c)
            if case.data == "infinities in B":
                made = Inputs(made.a, np.full_like(made.b, np.inf), made.c)
            acc = self._summation.sums(made.a, made.b, backwards=order == "descending")
            self._sums[key] = made, np.broadcast_to(acc, made.c.shape)
        return self._sums[key]

    def _tensors(self, case: Case, inputs: Inputs) -> dict[str, Real]:
        """Every tensor as numbers in its roles; along letters whose matrices are one it has one
        element."""
        problem, interface, c = self.problem, self.emitted.interface, inputs.c
        found = {problem.a.name: inputs.a, problem.b.name: inputs.b, problem.c.name: c}
        m, n, *_ = case.shape
        for at, param in enumerate(interface.params):
            if param.kind == "tensor" and param.name not in found:
                sizes = dict(zip(problem.letters, case.shape, strict=True))
                sizes |= dict.fromkeys(shared_letters(interface, param, case.layout), 1)
                shape = sizes_of(axes_of(problem, param.name), param.indices, sizes)
                rng = np.random.default_rng([at, m, n])
                drawn = rng.integers(-5, 6, shape) if case.data == "integers" else None
                values = rng.standard_normal(shape) if drawn is None else drawn
                number = computing(problem.accumulate)
                found[param.name] = held(values, param.dtype).astype(number)
        return found

    def _place(
        self, param: Param, tensors: Mapping[str, Real], values: Mapping[str, int], *, unread: bool
    ) -> EmbeddedView:
        """A tensor in its storage order; one that may not be read was never written."""
        interface = self.emitted.interface
        shape, strides = _laid_out(interface, param, values)
        step = alignment(interface, param.name)
        if max(n * abs(s) for n, s in zip(shape, strides, strict=True)) > DENSE:
            matrix: EmbeddedView = Sparse.spanning(shape, strides, dtype=param.dtype)
        else:
            matrix = EmbeddedView.strided(shape, strides, offset=step, dtype=param.dtype)
        if not unread and (param.read or not param.written):
            axes = axes_of(self.problem, param.name)
            laid = np.broadcast_to(in_storage(tensors[param.name], param.indices, axes), shape)
            matrix.view[...] = stored(laid, param.dtype)
        return matrix


def _laid_out(
    interface: Interface, param: Param, values: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape and the strides of a tensor."""
    shape = tuple(values[interface.extent(letter)] for letter in param.indices)
    return shape, tuple(1 if step is None else values[step] for step in interface.steps(param))


def _scalars(params: tuple[Param, ...], case: Case) -> dict[str, float]:
    given = {"alpha": case.alpha, "beta": case.beta}
    return {p.name: given.get(p.name, OTHER_SCALAR) for p in params if p.kind == "scalar"}


def _marked(values: Real, mark: float) -> Real:
    """``values`` with ``mark`` in the middle, if there is one: in one matrix of several."""
    if not values.size:
        return values
    copy = values.copy()
    copy[tuple(size // 2 for size in values.shape)] = mark
    return copy


def _difference(
    problem: Problem,
    placed: Mapping[str, EmbeddedView],
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
