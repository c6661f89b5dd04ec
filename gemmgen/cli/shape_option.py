"""``--shape``: extents in the order M, N, K, by the letters of a schedule, or both."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gemmgen.base.errors import UsageError
from gemmgen.ir.launch_shape import Shape
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.written_shapes import WrittenShape, resolve, written_shape

METAVAR = "MxNxK"
HELP = "MxNxK, or by letter: b=64,m=256,n=256,k=256, or 256x256x256,b=64"


def shape(text: str) -> WrittenShape:
    """``schedule.written_shapes``, as the type of an option."""
    try:
        return written_shape(text)
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


def cube(size: int) -> WrittenShape:
    """M = N = K."""
    return WrittenShape((size, size, size))


def resolve_all(written: Sequence[WrittenShape], gemm: Gemm) -> tuple[Shape, ...]:
    return tuple(resolve(one, gemm) for one in written)


__all__ = ["HELP", "METAVAR", "Shape", "WrittenShape", "cube", "resolve", "resolve_all", "shape"]
