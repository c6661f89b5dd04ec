"""G2: the kernel on a GPU, against exact integers, float64 and cuBLAS."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gemmgen.base.errors import CannotCheck
from gemmgen.calling.launches import Case
from gemmgen.gpu import device
from gemmgen.gpu.compare import Reference
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.verify_cases import cases, verify
from gemmgen.ir.launch_shape import Shape
from gemmgen.numerics.formats import Real, computing
from gemmgen.numerics.scales import factors_of
from gemmgen.pipeline import Emitted
from gemmgen.proof.default_shapes import g2_shapes
from gemmgen.proof.outcome import Outcome, Subject, failed, passed, skipped
from gemmgen.proof.rounded_epilogue import is_continuous, is_exact, wanted
from gemmgen.proof.sums import Factors, Summation

LAYER = "G2"
SEQUENTIAL = 1 << 24
"""Multiply-adds up to which the sums are computed in the kernel's order, bit for bit.

Above it a discontinuous epilogue (``round``, ``where``) is checked on integers alone, whose sums
are exact in any order.
"""


def check(subject: Subject) -> Outcome:
    """Runs the kernel on the current GPU, if there is one."""
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
    alone = emitted.schedule.epilogue or emitted.program.problem.scales
    against = "exact integers and float64" if alone else "cuBLAS and float64"
    name = device.name(kernel.device)
    return passed(LAYER, f"{len(outcomes)} cases against {against} on an {name}")


def cases_of(subject: Subject) -> tuple[Case, ...]:
    """What the kernel is called with: its shapes, every kind of numbers at each."""
    emitted = subject.emitted
    shapes = subject.shapes or g2_shapes(emitted)
    jumps = not is_continuous(emitted.program.problem)
    return tuple(
        case
        for shape in dict.fromkeys(shapes)
        for case in (*cases(shape), *_of_parts(emitted, shape))
        if case.data == "integers" or not (jumps and math.prod(shape) > SEQUENTIAL)
    )


def _of_parts(emitted: Emitted, shape: Shape) -> tuple[Case, ...]:
    """With ``decompose``: numbers that need every product of terms, and an infinity, which has no
    terms."""
    if emitted.interface.arithmetic.products == 1:
        return ()
    return Case(shape, "wide integers"), Case(shape, "infinity in B")


def reference_of(emitted: Emitted) -> Reference | None:
    """The expected result of the epilogue, or of scales; None for the default one without, which
    cuBLAS has too."""
    if emitted.schedule.epilogue is None and not emitted.program.problem.scales:
        return None
    problem, summation = emitted.program.problem.written, Summation.of(emitted.program)
    number = computing(problem.accumulate)

    def compute(given: Mapping[str, np.ndarray | float]) -> np.ndarray:
        tensors = {n: v.astype(number) for n, v in given.items() if isinstance(v, np.ndarray)}
        scalars = {n: v for n, v in given.items() if not isinstance(v, np.ndarray)}
        a, b = tensors.pop(problem.a.name), tensors.pop(problem.b.name)
        factors = (
            factors_of(problem, problem.a, tensors, a.shape),
            factors_of(problem, problem.b, tensors, b.shape),
        )
        found = _sums(a, b, factors, summation)
        acc = np.broadcast_to(found, tensors[problem.c.name].shape)
        return wanted(problem, acc, tensors, scalars).value

    return compute


def _sums(a: Real, b: Real, factors: Factors, summation: Summation) -> Real:
    """A (M, K) times B (K, N), for each batch; large ones through float64, on the GPU."""
    both = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if math.prod((*both, *a.shape[-2:], b.shape[-1])) <= SEQUENTIAL:
        return summation.sums(a, b, factors)
    a, b = (x if own is None else x * own for x, own in zip((a, b), factors, strict=True))
    on_gpu = device.cupy().asarray
    found = (on_gpu(a).astype("float64") @ on_gpu(b).astype("float64")).get()
    return found.astype(a.dtype)
