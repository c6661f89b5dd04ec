"""The pass in which a failing schedule loses its meaning."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gemmgen.fuzz.trial import Failure, compile_text
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import rewrite
from gemmgen.proof.meaning import difference
from gemmgen.proof.shapes import fit, ring_of, tile_of

_MOST = 1 << 15
"""Elements of C and multiply-adds above which a shape is too large for the interpreter."""


def blamed(text: str, failure: Failure) -> Failure:
    """``failure`` with the first pass after which the program computes something else.

    The interpreter runs the program after each pass.  If it finds nothing, the failure's own
    citation is kept: then emission, or the text's synchronization, is wrong.
    """
    if failure.layer not in ("C1", "C2"):
        return failure
    try:
        passed = _first_wrong(text, failure)
    except Exception as error:
        passed = f"a pass that raises {type(error).__name__}"
    return replace(failure, blame=passed) if passed else failure


def _first_wrong(text: str, failure: Failure) -> str:
    emitted = compile_text(text)
    if emitted is None:
        return ""
    m, _, k, _ = tile_of(emitted.program)
    wanted: list[Shape] = [(3, 5, ring_of(emitted.program) + 1), (min(m, 64) + 1, 3, k + 1)]
    if failure.case and _size(failure.case.shape) <= _MOST:
        wanted.insert(0, failure.case.shape)
    shapes = tuple(fit(emitted, shape) for shape in wanted)
    for step in rewrite(emitted.schedule):
        if difference(step, shapes) is not None:
            return step.directive
    return ""


def _size(shape: Shape) -> int:
    m, n, k, *batches = shape
    return m * n * max(k, 1) * prod(batches)
