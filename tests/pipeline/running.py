"""Emitted text, run on the CPU and compared with the reference in every bit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gemmgen.base.source import Source
from gemmgen.calling.inputs import drawn
from gemmgen.calling.launches import Case, Data, Order
from gemmgen.numerics.axes import axes_of, in_roles
from gemmgen.numerics.formats import F32, Real, stored
from gemmgen.numerics.reference import compare
from gemmgen.numerics.scales import factors_of
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.proof.rounded_epilogue import wanted
from gemmgen.proof.shapes import fit
from gemmgen.proof.sums import Summation
from gemmgen.sim.allocation import allocated, arguments_of
from gemmgen.sim.run import compile_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(path.stem for path in EXAMPLES.glob("*.sched")))

Operands = Mapping[str, F32]
Want = Callable[[F32, F32, Operands], F32]
"""C of acc, the old C, and the epilogue's own tensors (broadcast to C) and scalars."""


@functools.cache
def emitted(text: str) -> Emitted:
    return compile_source(Source(text, "x.sched"))


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.sched").read_text(encoding="utf-8")


def call(
    m: int,
    n: int,
    k: int,
    alpha: float = 1.0,
    beta: float = 0.0,
    *,
    pad: int = 0,
    order: Order = "ascending",
    tight: bool = False,
    data: Data = "normal",
) -> Case:
    """A call with zero-mean numbers, extents in their roles."""
    return Case((m, n, k), data, alpha, beta, pad, order, tight=tight)


def met(case: Case, kernel: Emitted) -> Case:
    """The call with extents that satisfy the schedule's ``assume`` lines."""
    return replace(case, shape=fit(kernel, case.shape))


_callers: dict[str, Caller] = {}


def check(kernel: Emitted, case: Case, want: Want | None = None, text: str = "") -> None:
    """Fails unless the kernel (or ``text`` in its place) gives the reference's bits, no other
    memory is written and no input changed; and the reference is ``want``'s."""
    wrong = complaint(kernel, case, text)
    assert wrong is None, f"{case}: {wrong}"
    if want is not None:
        check_reference(kernel, case, want)


def complaint(kernel: Emitted, case: Case, text: str = "") -> str | None:
    """What is wrong with the result of ``kernel``, or of ``text`` with its interface, in words."""
    caller = _callers.setdefault(kernel.text, Caller(kernel))
    return caller.complaint(case, compile_kernel(text or kernel.text, kernel.interface))


def check_reference(kernel: Emitted, case: Case, want: Want) -> None:
    """Fails unless what an epilogue should give is what ``want`` computes."""
    given = operands(kernel, case)
    found = wanted(kernel.program.problem.written, given.acc, given.tensors, given.scalars).value
    own = want(given.acc, given.tensors["C"], given.named)
    result = compare(stored(found, "f32"), own)
    assert result.equal, f"{case}: the reference of the epilogue: {result.text()}"


@dataclass(frozen=True)
class Given:
    """What a call is given, in its roles; ``acc`` is summed in the kernel's order."""

    tensors: Mapping[str, Real]
    scalars: Mapping[str, float]
    acc: Real

    @property
    def named(self) -> dict[str, F32]:
        """The epilogue's own tensors and scalars."""
        return {**self.tensors, **{name: np.float32(v) for name, v in self.scalars.items()}}


def operands(kernel: Emitted, case: Case) -> Given:
    tensors, problem = drawn(kernel.interface, case), kernel.program.problem.written
    a, b = tensors[problem.a.name], tensors[problem.b.name]
    factors = tuple(
        factors_of(problem, operand, tensors, values.shape)
        for operand, values in ((problem.a, a), (problem.b, b))
    )
    acc = Summation.of(kernel.program).sums(a, b, factors)
    return Given(tensors, case.scalars(kernel.interface), acc)


def result_of(kernel: Emitted, case: Case) -> F32:
    """What the text computes, as elements in their roles."""
    interface, problem = kernel.interface, kernel.program.problem.written
    memory = allocated(interface, case, drawn(interface, case))
    compiled = compile_kernel(kernel.text, interface)
    compiled.run(arguments_of(interface, case, memory), order=case.order)
    c = problem.c
    return in_roles(memory[c.name].view, c.letters, axes_of(problem, c.name))
