"""G2: the kernel on a GPU, against exact integers, float64 and cuBLAS."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gemmgen.base.errors import CannotCheck
from gemmgen.calling.launches import Shape
from gemmgen.gpu import device
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.verify import Case, Reference, cases, verify
from gemmgen.numerics.axes import axes_of, in_roles, in_storage
from gemmgen.numerics.formats import Real, computing
from gemmgen.pipeline import Emitted
from gemmgen.proof.epilogue import is_continuous, is_exact, wanted
from gemmgen.proof.outcome import Outcome, Subject, failed, passed, skipped
from gemmgen.proof.shapes import default_shapes, fit
from gemmgen.proof.sums import Summation
from gemmgen.schedule.roles import batches, extents

LAYER = "G2"
LARGER: tuple[Shape, ...] = ((127, 131, 257), (512, 512, 512), (1000, 1100, 300))
MANY: Shape = (2, 3, 5, 70_001)
"""More matrices than the 65,535 blocks of a grid's other dimensions."""
SEQUENTIAL = 1 << 24
"""Multiply-adds up to which the sums are computed in the kernel's order, bit for bit.

Beyond it an epilogue that jumps (``round``, ``where``) is checked on integers alone, whose sums are
exact in any order.
"""


def check(subject: Subject) -> Outcome:
    """Runs the kernel on the current GPU, where there is one."""
    emitted = subject.emitted
    missing = device.missing()
    if missing is not None:
        return skipped(LAYER, missing)
    try:
        kernel = Kernel.of(emitted)
    except CannotCheck as unable:
        return skipped(LAYER, str(unable))
    wanted_cases = cases_of(subject)
    outcomes = verify(
        kernel,
        wanted_cases,
        reference=reference_of(emitted),
        exact=is_exact(emitted.program.problem),
    )
    for outcome in outcomes:
        if outcome.status != "passed":
            return failed(LAYER, f"{outcome.case.text()}: {outcome.detail}")
    against = "exact integers and float64" if emitted.schedule.epilogue else "cuBLAS and float64"
    name = device.name(kernel.device)
    return passed(LAYER, f"{len(outcomes)} cases against {against} on an {name}")


def cases_of(subject: Subject) -> tuple[Case, ...]:
    """What the kernel is called with: its shapes, every kind of numbers at each."""
    emitted = subject.emitted
    shapes = subject.shapes
    if not shapes:
        shapes = (*default_shapes(emitted), *(fit(emitted, shape) for shape in LARGER))
    names = tuple(extents(emitted.schedule.gemm).values())
    batched = bool(batches(emitted.schedule.gemm))
    if batched and not subject.shapes:
        many = (*MANY, *(1 for _ in names[len(MANY) :]))
        shapes = (*shapes, fit(emitted, many))
    jumps = not is_continuous(emitted.program.problem)
    return tuple(
        case
        for shape in dict.fromkeys(shapes)
        for case in cases(dict(zip(names, shape, strict=True)), batched=batched)
        if case.data == "integers" or not (jumps and math.prod(shape) > SEQUENTIAL)
    )


def reference_of(emitted: Emitted) -> Reference | None:
    """What an epilogue of its own should give; None for the default one, which cuBLAS has too."""
    if emitted.schedule.epilogue is None:
        return None
    problem, summation = emitted.program.problem, Summation.of(emitted.program)
    number = computing(problem.accumulate)

    params = {p.name: p.indices for p in emitted.interface.params if p.kind == "tensor"}
    c = problem.c

    def compute(given: Mapping[str, np.ndarray | float]) -> np.ndarray:
        tensors = {
            name: in_roles(value.astype(number), params[name], axes_of(problem, name))
            for name, value in given.items()
            if isinstance(value, np.ndarray)
        }
        scalars = {name: v for name, v in given.items() if not isinstance(v, np.ndarray)}
        a, b = tensors.pop(problem.a.name), tensors.pop(problem.b.name)
        result = wanted(problem, _sums(a, b, summation), tensors, scalars).value
        return in_storage(result, c.letters, axes_of(problem, c.name))

    return compute


def _sums(a: Real, b: Real, summation: Summation) -> Real:
    """A (M, K) times B (K, N), for each batch; large ones through float64, on the GPU."""
    both = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if math.prod((*both, *a.shape[-2:], b.shape[-1])) <= SEQUENTIAL:
        return summation.sums(a, b)
    on_gpu = device.cupy().asarray
    found = (on_gpu(a).astype("float64") @ on_gpu(b).astype("float64")).get()
    return found.astype(a.dtype)
