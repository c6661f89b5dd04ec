"""Whether a mutant is found out: a checked run at ragged shapes, against the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gemmgen import reference
from gemmgen.formats import Real, Stored, computing, held, stored
from gemmgen.interface import Param
from gemmgen.ir.build import problem_of
from gemmgen.ir.problem import Problem
from gemmgen.pipeline import Emitted
from gemmgen.sim.failures import CompileFailure, KernelFault, KernelTimeout
from gemmgen.sim.memory import Matrix, sparse
from gemmgen.sim.packing import Argument
from gemmgen.sim.process import LANDINGS
from gemmgen.sim.run import CompiledKernel
from gemmgen.sim.toolchain import object_code
from gemmgen.verify.epilogue import Wanted, hides_c, wanted
from gemmgen.verify.shapes import Shape, alignment, ring_of, solve, tile_of
from gemmgen.verify.sums import Summation

SECONDS = 2
SPAN = 2**31
"""Elements; half of a sparse matrix is as long, so that its later rows are beyond an int."""

_ORDERS = ("ascending", "descending", "shuffled")
_SCALARS = ((0.7, -1.0), (0.7, 0.0), (-1.0, 0.7), (1.0, 1.0))


@dataclass(frozen=True)
class Call:
    """What a kernel is given, and the C that is right.  The tensors are in storage order."""

    numbers: Mapping[str, int | float]
    tensors: Mapping[str, Stored]
    want: Wanted
    order: str
    landing: str
    unreadable: tuple[str, ...]


class Trials:
    """Calls of the kernels that share one interface: an emitted one and its mutants."""

    def __init__(self, emitted: Emitted):
        self._emitted = emitted
        self._problem = problem_of(emitted.schedule)
        self._calls = tuple(self._prepared())
        m, n, k, _ = tile_of(emitted.program)
        wide = ((5, 6, 5), (m, n, 2 * k), (m + 2, n + 3, 2 * k + 3))
        self._spanning = tuple(self._prepare(shape, 1.0, 1.0, 0) for shape in wide)
        self._code = object_code(emitted.text, emitted.interface)

    def is_same_program(self, text: str) -> bool:
        """Does ``text``, which compiles, become the same machine code as the emitted text?"""
        return object_code(text, self._emitted.interface) == self._code

    def verdict(self, text: str) -> str | None:
        """How ``text`` is found out; None where it passes for the emitted kernel."""
        try:
            kernel = CompiledKernel(text, self._emitted.interface, checked=True, warn=False)
        except CompileFailure:
            return "does not compile"
        try:
            for call in self._calls:
                complaint = self._run(kernel, call)
                if complaint is not None:
                    return complaint
            self._run_sparse(kernel)
            return None
        except KernelFault as fault:
            return str(fault)
        except KernelTimeout as timeout:
            return str(timeout)
        finally:
            kernel.close()

    def _prepared(self) -> Iterator[Call]:
        for i, shape in enumerate(_shapes(self._emitted)):
            scalars = _SCALARS if i == 0 else (_SCALARS[i % 2], _SCALARS[2 + i % 2])
            for alpha, beta in scalars:
                yield self._prepare(shape, alpha, beta, i)

    def _prepare(self, shape: Shape, alpha: float, beta: float, number: int) -> Call:
        emitted, problem = self._emitted, self._problem
        names = [problem.extent(letter) for letter in (problem.m, problem.n, problem.k)]
        numbers = _apart(emitted, solve(emitted, dict(zip(names, shape, strict=True)), number % 3))
        m, n, k = (numbers[name] for name in names)
        drawn = reference.normal(m, n, k, number, problem.types)
        params = emitted.interface.params
        given = {"alpha": alpha, "beta": beta}
        scalars = {p.name: given.get(p.name, 0.75) for p in params if p.kind == "scalar"}
        unread = hides_c(problem) and beta == 0
        rows = {problem.a.name: drawn.a, problem.b.name: drawn.b, problem.c.name: drawn.c}
        for param in params:
            if param.kind == "tensor" and param.name not in rows:
                sizes = [
                    m if problem.m in param.indices else 1,
                    n if problem.n in param.indices else 1,
                ]
                drawing = np.random.default_rng([number, *sizes])
                kind = computing(problem.accumulate)
                rows[param.name] = held(drawing.standard_normal(sizes), param.dtype).astype(kind)
        acc = Summation.of(emitted.program).sums(drawn.a, drawn.b)
        want = wanted(problem, acc, rows, scalars)
        laid = {p.name: _laid(problem, p, rows[p.name]) for p in params if p.kind == "tensor"}
        if unread:
            c = laid[problem.c.name]
            laid[problem.c.name] = reference.poison(c.size, problem.c.dtype).reshape(c.shape)
        unreadable = (problem.c.name,) if unread else ()
        order, landing = _ORDERS[number % 3], LANDINGS[number % 2]
        return Call({**numbers, **scalars}, laid, want, order, landing, unreadable)

    def _run(self, kernel: CompiledKernel, call: Call) -> str | None:
        """What is wrong with the kernel's answer.  Raises KernelFault, KernelTimeout."""
        interface, problem = self._emitted.interface, self._problem
        pitches = dict(interface.pitch)
        arguments: dict[str, Argument] = {}
        matrices: dict[str, Matrix] = {}
        for param in interface.params:
            if param.is_scratch:
                continue
            if param.kind != "tensor":
                arguments[param.name] = call.numbers[param.name]
                continue
            elements = np.atleast_2d(call.tensors[param.name])
            pitch = int(call.numbers[pitches[param.name]]) if param.name in pitches else None
            offset = alignment(interface, param.name)
            matrix = Matrix.holding(elements, pitch, offset=offset, dtype=param.dtype)
            matrices[param.name] = matrix
            arguments[param.name] = matrix.view[0] if len(param.indices) == 1 else matrix.view
        kernel.run(
            arguments,
            order=call.order,
            landing=call.landing,
            seed=1,
            seconds=SECONDS,
            unreadable=call.unreadable,
        )
        for name, matrix in matrices.items():
            touched = matrix.touched()
            if touched is not None:
                return f"{name}: {touched}"
        result = _rows(problem, problem.c.letters, matrices[problem.c.name].view)
        compared = reference.compare(result, call.want.value, call.want.bound, problem.c.dtype)
        return None if compared.equal else compared.text()

    def _run_sparse(self, kernel: CompiledKernel) -> None:
        """Runs where the later rows of each matrix lie beyond an int of elements.

        Raises KernelFault, KernelTimeout.
        """
        interface = self._emitted.interface
        pitches = dict(interface.pitch)
        leading = {p.name for p in interface.params if p.kind == "ld"}
        if not leading.issuperset(pitches.values()):
            return
        for call in self._spanning:
            arguments: dict[str, Argument] = dict(call.numbers)
            for name, tensor in call.tensors.items():
                if name not in pitches:
                    arguments[name] = tensor
                    continue
                pitch = SPAN // max(len(tensor) // 2, 1) // 4 * 4 + 4
                arguments[pitches[name]] = pitch
                arguments[name] = sparse(tensor, pitch)
            kernel.run(arguments, seconds=SECONDS, unreadable=call.unreadable)


def _shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Ragged ones first; whole tiles; more rows of blocks than a band of the raster has."""
    m, n, k, _ = tile_of(emitted.program)
    ring = ring_of(emitted.program)
    return (
        (3, 5, 7),
        (9, 5, 2 * k + 3),
        (m + 2, n + 3, 2 * k + 1),
        (m, n, ring),
        (m, n, ring + k // 2 + 1),
        (m - 1, n + 1, ring - 1),
        (m + 1, n - 1, ring + 1),
        (2 * m + 1, n, k + 3),
        (m, 2 * n + 1, k - 1),
        (9, 5, m + n + 2 * k),
        (m + n, 5, 3 * k),
        (m + 4, n + 4, 4),
        (3, 5, 0),
        (9 * m + 1, n + 1, 1),
        (9 * m + 1, n, 1),
    )


def _apart(emitted: Emitted, values: dict[str, int]) -> dict[str, int]:
    """No two leading dimensions equal, where nothing forbids it: swapped ones then show."""
    interface = emitted.interface
    leading = [p.name for p in interface.params if p.kind == "ld"]
    addresses = {p.name: 0 for p in interface.params if p.kind == "tensor"}
    for i, name in enumerate(leading):
        changed = values | {name: values[name] + 4 * i}
        if not interface.violated(changed | addresses):
            values = changed
    return values


def _laid(problem: Problem, param: Param, rows: Real) -> Stored:
    """A tensor of its role's rows and columns, in the order of its storage."""
    elements = stored(rows, param.dtype)
    if len(param.indices) == 1:
        return elements.reshape(-1)
    return np.ascontiguousarray(_rows(problem, param.indices, elements, param.name))


def _rows(problem: Problem, letters: tuple[str, ...], values: Stored, name: str = "") -> Stored:
    first = problem.k if name == problem.b.name else problem.m
    return values if letters[0] == first else values.T
