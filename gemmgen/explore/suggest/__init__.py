"""``gemmgen suggest``: a schedule for a shape, measured before or chosen by a cost model.

``request`` is the problem, its extents and a GPU; ``forms`` lists tiles that have measured well;
``schedules`` writes one down for a request, ``explore.cost`` estimates its time, ``choose``
takes the fastest, or a measured one of ``explore.results``, and ``reasons`` writes the comments.

    import gemmgen
    gemm = "C[m, n] = A[k, m] * B[k, n]"
    found = gemmgen.suggest(gemm, (300, 200, 5000), epilogue="relu(acc + bias[n])")
    print(found.text)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gemmgen.explore.suggest.choose import Suggestion
    from gemmgen.gpu.gpus import Gpu
    from gemmgen.ir.decompositions import Fast
    from gemmgen.schedule.extents import AnyShape

GEMM = "C[m, n] = A[m, k] * B[k, n]"


def suggest(
    gemm: str = GEMM,
    shape: AnyShape = (),
    *,
    dtype: str = "f32",
    epilogue: str | None = None,
    gpu: str | Path | Gpu = "H200",
    ld: Mapping[str, int] | None = None,
    kernel: str = "gemm",
    fast: Fast = False,
    same_bits: str | None = None,
    measured: bool = True,
) -> Suggestion:
    """A schedule for ``gemm`` (the text after that word in a schedule) at ``shape``.

    ``shape``: extents by letter, ``{"b": 24, "m": 512, "n": 512, "k": 64}``, or M, N, K and batches
    in order, or one number for these, or the text of ``--shape``, ``"300x200x5000"``.  ``dtype``:
    an element type (f32, bf16, e4m3, ...), or the text after that word, ``"A=bf16 B=bf16 C=f32"``.
    ``epilogue``: the expression of ``fuse_epilogue``.  ``gpu``: the name of a known GPU in any
    case, a file with its figures, or a ``Gpu``.  ``ld``: leading dimensions in elements by tensor,
    for those that are not dense; the schedule is legal for them.  ``fast``:
    f32 may be multiplied on tensor cores as products of bf16 terms (``decompose``), if that is
    estimated to be faster; needs wgmma (sm_90).  ``fast="f16"``: as products of two f16 terms,
    nearly twice as fast, with a larger error (the header of the kernel states its bound).
    ``same_bits``: letters of C (``"m"``) whose extents the bits of an element must not depend on:
    all shapes that differ in these get schedules with one summation order (batch invariance).
    ``measured``: results that ``gemmgen tune`` stored on this machine and those that ship with
    gemmgen are used; without it the cost model alone chooses.

    The result has ``text`` (the schedule, reasons in comments), ``reasons``, ``schedule`` and
    ``emitted``.  Raises ``ScheduleError`` for a mistake in the gemm line, the types or the
    epilogue, and ``UsageError`` for other ones, or if no schedule exists.
    """
    from gemmgen.base.choices import check_flag
    from gemmgen.explore.request import Request
    from gemmgen.explore.suggest.choose import choose

    check_flag("measured", measured)
    return choose(
        Request.of(
            gemm,
            shape,
            dtype=dtype,
            epilogue=epilogue,
            gpu=gpu,
            ld=ld,
            kernel=kernel,
            fast=fast,
            same_bits=same_bits,
        ),
        measured=measured,
    )


__all__ = ["suggest"]
