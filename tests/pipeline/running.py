"""Emitted text, run on the CPU and compared with the reference in every bit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gemmgen.base.source import Source
from gemmgen.ir.dtypes import SINGLE, Types
from gemmgen.ir.interface import Interface, MultipleOf, Param
from gemmgen.numerics import reference
from gemmgen.numerics.formats import Stored, poison, stored
from gemmgen.numerics.reference import F32, Comparison
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.sums import Summation
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.roles import roles
from gemmgen.sim.memory import EmbeddedView
from gemmgen.sim.run import Argument, compile_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(path.stem for path in EXAMPLES.glob("*.sched")))

Operands = Mapping[str, F32]
Want = Callable[[F32, F32, Operands], F32]
"""C of acc, the old C, and the epilogue's own tensors (broadcast to C) and scalars."""


@dataclass(frozen=True)
class Call:
    """One launch: extents in their roles, scalars, and how far rows lie apart beyond their length.

    ``tight``: the matrices' memory ends at an address that can't be read, so that a read past
    them shows even where its value is thrown away.
    """

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    order: str = "ascending"
    tight: bool = False


@functools.cache
def emitted(text: str) -> Emitted:
    return compile_source(Source(text, "x.sched"))


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.sched").read_text(encoding="utf-8")


IN_ORDER = Summation()
"""All terms of a sum, one after another."""


@functools.lru_cache(maxsize=128)
def inputs(
    m: int, n: int, k: int, summation: Summation = IN_ORDER, types: Types = SINGLE
) -> tuple[reference.Inputs, F32]:
    """Zero-mean A, B and C, and the product of A and B summed in the kernel's order."""
    drawn = reference.normal(m, n, k, seed=m + 3 * n + 7 * k, types=types)
    return drawn, summation.sums(drawn.a, drawn.b)


def types_of(kernel: Emitted) -> Types:
    """The element types of its matrices and sums."""
    return kernel.program.problem.types


def check(kernel: Emitted, call: Call, want: Want | None = None, text: str = "") -> None:
    """Fails unless the kernel (or ``text`` in its place) gives the reference's bits, no other
    memory is written and no input changed."""
    result = run(kernel, call, want, text)
    assert result.equal, f"{call}: {result.text()}"


def run(kernel: Emitted, call: Call, want: Want | None = None, text: str = "") -> Comparison:
    """``kernel`` (or ``text``, with its interface) on zero-mean inputs, compared in every bit."""
    launch = Launch(kernel, call)
    drawn, acc = inputs(call.m, call.n, call.k, Summation.of(kernel.program), types_of(kernel))
    if kernel.schedule.epilogue is None:
        # With beta = 0 the old C counts as zeros, so that -0 + 0 = 0.
        old = drawn.c if call.beta else np.zeros_like(drawn.c)
        wanted = reference.default_epilogue(acc, drawn.c, call.alpha, call.beta)
        wanted = wanted if call.beta else wanted + old
    else:
        assert want is not None, "an epilogue of one's own needs its reference"
        wanted = want(acc, drawn.c, launch.operands)
    compiled = compile_kernel(text or kernel.text, kernel.interface)
    compiled.run(launch.arguments, order=call.order, seed=1)
    return launch.compare(wanted)


def met(call: Call, schedule: Schedule) -> Call:
    """The call with extents that satisfy the schedule's ``assume`` lines."""
    sizes = {"M": call.m, "N": call.n, "K": call.k}
    for fact in schedule.assumes:
        if fact.divisor and fact.name in sizes:
            sizes[fact.name] = -(-sizes[fact.name] // fact.divisor) * fact.divisor
    return replace(call, m=sizes["M"], n=sizes["N"], k=sizes["K"])


@dataclass
class Launch:
    """The arguments of one call, and what they were."""

    kernel: Emitted
    call: Call
    arguments: dict[str, Argument] = field(default_factory=dict)
    operands: dict[str, F32] = field(default_factory=dict)
    memories: dict[str, EmbeddedView] = field(default_factory=dict)
    before: dict[str, Stored] = field(default_factory=dict)

    def __post_init__(self) -> None:
        gemm, call = self.kernel.schedule.gemm, self.call
        self.row, self.column, k = roles(gemm)
        sizes = self.sizes = {self.row: call.m, self.column: call.n, k: call.k}
        drawn, _ = inputs(call.m, call.n, call.k, types=types_of(self.kernel))
        held = {
            gemm.a.tensor: (drawn.a, (self.row, k)),
            gemm.b.tensor: (drawn.b, (k, self.column)),
            gemm.c.tensor: (drawn.c, (self.row, self.column)),
        }
        self.extents = {self.kernel.interface.extent(x): size for x, size in sizes.items()}
        for param in self.kernel.interface.params:
            if param.kind == "extent":
                self.arguments[param.name] = self.extents[param.name]
            elif param.kind == "tensor" and param.name in held:
                values, letters = held[param.name]
                ordered = values if letters == param.indices else values.T
                self._matrix(param, stored(np.ascontiguousarray(ordered), param.dtype))
            elif param.kind == "tensor":
                self._own(param, tuple(sizes[x] for x in param.indices))
            elif param.kind == "scalar":
                self.arguments[param.name] = self._scalar(param.name)

    def _scalar(self, name: str) -> float:
        known = {"alpha": self.call.alpha, "beta": self.call.beta}
        value = known.get(name, 0.25 + len(self.operands) / 8)
        self.operands[name] = np.float32(value)
        return float(value)

    def _own(self, param: Param, shape: tuple[int, ...]) -> None:
        """A tensor of the epilogue."""
        rng = np.random.default_rng([9, len(self.operands)])
        values = rng.standard_normal(shape).astype(np.float32)
        if len(shape) == 2:
            self._matrix(param, values)
            straight = param.indices == (self.row, self.column)
            self.operands[param.name] = values if straight else values.T
            return
        self.arguments[param.name] = at_the_end(values)
        self.operands[param.name] = values[:, None] if param.indices == (self.row,) else values

    def _matrix(self, param: Param, values: Stored) -> None:
        name = param.name
        pitch = self._pitch(name, values.shape[1])
        if self.call.tight and len(values):
            rows = poison(len(values) * pitch, param.dtype).reshape(-1, pitch)
            rows[:, : values.shape[1]] = values
            view = at_the_end(rows)[:, : values.shape[1]]
            self.arguments[name] = view
            self.memories[name] = EmbeddedView(view, view, 0, (pitch, 1), param.dtype)
        else:
            hidden = param.written and self.call.beta == 0 and self._hides_c()
            matrix = (
                EmbeddedView.poisoned(*values.shape, pitch, dtype=param.dtype)
                if hidden
                else EmbeddedView.holding(values, pitch, dtype=param.dtype)
            )
            self.arguments[name] = matrix.view
            self.memories[name] = matrix
        self.before[name] = values

    def _hides_c(self) -> bool:
        """With the default epilogue and beta = 0, C holds the poison of what was never written."""
        return self.kernel.schedule.epilogue is None

    def _pitch(self, tensor: str, columns: int) -> int:
        interface = self.kernel.interface
        own = dict(interface.pitch)[tensor]
        if own not in {p.name for p in interface.params if p.kind == "ld"}:
            return self.extents[own]
        by = _divisor(interface, own)
        pitch = -(-(columns + self.call.pad) // by) * by
        self.arguments[own] = pitch
        return pitch

    def compare(self, wanted: F32) -> Comparison:
        gemm = self.kernel.schedule.gemm
        name = gemm.c.tensor
        ordered = wanted if gemm.c.indices == (self.row, self.column) else wanted.T
        result = reference.compare(
            self.memories[name].view,
            np.ascontiguousarray(ordered),
            dtype=types_of(self.kernel).c,
        )
        for other, matrix in self.memories.items():
            beside = None if self.call.tight else matrix.touched()
            if other != name and not beside:
                beside = matrix.changed(self.before[other])
            if beside:
                return replace(result, reason=f"{other}: {beside}")
        return result


def _divisor(interface: Interface, name: str) -> int:
    found = [
        r.divisor for r in interface.requirements if isinstance(r, MultipleOf) and r.name == name
    ]
    return int(np.lcm.reduce(found)) if found else 1


def at_the_end(values: Stored) -> Stored:
    """A copy of ``values`` in aligned memory of its own, with the last address that the CPU run's
    guard page allows: at most 12 bytes lie between its end and a multiple of 256."""
    size = values.nbytes
    raw = bytearray(size + 512)
    address = np.frombuffer(raw, np.uint8).__array_interface__["data"][0]
    first = (-(size + address) % 256 + address) // 16 * 16 - address
    inside = memoryview(raw)[first % 256 :][:size]
    copy = np.frombuffer(inside, values.dtype).reshape(values.shape)
    copy[:] = values
    return copy
