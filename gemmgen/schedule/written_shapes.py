"""Shapes as text: extents in the order M, N, K, by the letters of a schedule, or both."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import shown
from gemmgen.ir.interface import INT_MAX
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import batches, roles

_FORM = "a shape is MxNxK, 1024x512x256 say, or one number for all three, or letter=number,..."


@record
class WrittenShape:
    """A shape as written: M, N and K together, and extents by letter."""

    matrix: tuple[int, int, int] | None
    named: tuple[tuple[str, int], ...] = ()


def written_shape(text: str) -> WrittenShape:
    """``1024x512x256`` (M, N, K), ``1024`` (a cube), ``b=64,m=256,n=256,k=256``, or
    ``256x256x256,b=64``; raises ``UsageError``."""
    matrix: tuple[int, int, int] | None = None
    named: list[tuple[str, int]] = []
    for at, part in enumerate(text.split(",")):
        letter, equals, size = (word.strip() for word in part.partition("="))
        if equals:
            if not re.fullmatch(r"[a-z]\w*", letter, re.ASCII):
                raise UsageError(_FORM)
            named.append((letter, _size(size)))
        elif at == 0:
            matrix = _matrix(letter)
        else:
            raise UsageError(_FORM)
    return WrittenShape(matrix, tuple(named))


def _matrix(text: str) -> tuple[int, int, int]:
    sizes = [_size(part) for part in text.split("x")]
    if len(sizes) not in (1, 3):
        raise UsageError(_FORM)
    m, n, k = sizes if len(sizes) == 3 else sizes * 3
    return m, n, k


def _size(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII):
        raise UsageError(_FORM)
    size = int(text)
    if size > INT_MAX:
        raise UsageError(f"an extent is at most {INT_MAX}")
    return size


def resolve(written: WrittenShape, gemm: Gemm, name: str = "--shape") -> tuple[int, ...]:
    """The extents of a schedule's letters; batches that are not named have one matrix.

    Raises ``UsageError`` for a letter that the schedule lacks, or that is named twice or not at
    all; messages call the shape ``name``.
    """
    tiled = roles(gemm)
    letters = (*tiled, *batches(gemm))
    sizes = dict(zip(tiled, written.matrix or (), strict=False))
    for letter, size in written.named:
        if letter not in letters:
            known = ", ".join(letters)
            raise UsageError(f"{name}: there is no letter {shown(letter)}; there are {known}")
        if letter in sizes:
            raise UsageError(f"{name} gives {letter} twice; once is enough")
        sizes[letter] = size
    missing = [letter for letter in tiled if letter not in sizes]
    if missing:
        raise UsageError(f"{name} lacks {' and '.join(missing)}: {_example(tiled)}")
    return tuple(sizes.get(letter, 1) for letter in letters)


def _example(tiled: Sequence[str]) -> str:
    return "give " + ",".join(f"{letter}=256" for letter in tiled)
