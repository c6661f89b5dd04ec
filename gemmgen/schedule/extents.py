"""The extents of a schedule's letters, as Python callers give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmgen.base.errors import UsageError
from gemmgen.base.source import value_shown
from gemmgen.ir.interface import INT_MAX
from gemmgen.ir.launch_shape import Shape
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import batches, roles
from gemmgen.schedule.written_shapes import resolve, written_shape

AnyShape = int | str | Sequence[int] | Mapping[str, int]
"""One number (a cube), M, N, K and batches in order, extents by letter, or the text of ``--shape``:
``"1024x512x256"``."""


def shape_of(gemm: Gemm, shape: AnyShape) -> Shape:
    """M, N, K and batches of ``shape``; batches that are left out have one matrix."""
    letters = (*roles(gemm), *batches(gemm))
    if isinstance(shape, str):
        return resolve(written_shape(shape), gemm, "the shape")
    if isinstance(shape, Mapping):
        unknown = [letter for letter in shape if letter not in letters]
        missing = [letter for letter in letters[:3] if letter not in shape]
        if unknown or missing:
            what = f"has no letter {unknown[0]}" if unknown else f"lacks {missing[0]}"
            raise UsageError(f"the shape {what}: the letters are {', '.join(letters)}")
        sizes = tuple(shape.get(letter, 1) for letter in letters)
    else:
        if not isinstance(shape, int | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"a shape is a number, a sequence, a mapping or a text, not {value_shown(shape)}"
            )
        given = (shape, shape, shape) if isinstance(shape, int) else tuple(shape)
        if not 3 <= len(given) <= len(letters):
            raise UsageError(f"a shape has the extents of {', '.join(letters)}, in this order")
        sizes = (*given, *[1] * (len(letters) - len(given)))
    wrong = [size for size in sizes if type(size) is not int or not 0 <= size <= INT_MAX]
    if wrong:
        raise UsageError(f"an extent is an int from 0 to {INT_MAX}, not {value_shown(wrong[0])}")
    return sizes
