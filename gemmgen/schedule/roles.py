"""The roles of the letters of the ``gemm`` line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmgen.ir.parameters import extent_of, stride_name
from gemmgen.schedule.spec import Role

if TYPE_CHECKING:
    from gemmgen.schedule.model import Access, Gemm


def roles(gemm: Gemm) -> tuple[str, str, str]:
    """The row, the column and the contracted letter of a checked ``gemm`` line.

    Of several row (or column) letters the innermost in C is the one that is tiled.
    """
    c, a, b = gemm.c.indices, gemm.a.indices, gemm.b.indices
    *_, m = (letter for letter in c if letter in a and letter not in b)
    *_, n = (letter for letter in c if letter in b and letter not in a)
    (k,) = (letter for letter in a if letter in b and letter not in c)
    return m, n, k


def batches(gemm: Gemm) -> tuple[str, ...]:
    """The batch letters of a checked ``gemm`` line, in the output's order."""
    tiled = roles(gemm)
    return tuple(letter for letter in gemm.c.indices if letter not in tiled)


def matrix(access: Access, gemm: Gemm) -> tuple[str, ...]:
    """An access's letters without the batches: those of one matrix."""
    tiled = roles(gemm)
    return tuple(letter for letter in access.indices if letter in tiled)


def letters(gemm: Gemm) -> dict[str, str]:
    """The roles ``<m>``, ``<n>``, ``<k>`` of a directive's arguments, and the letters in them."""
    m, n, k = roles(gemm)
    return {"<m>": m, "<n>": n, "<k>": k}


def spelt(name: str, letters: dict[str, str]) -> str:
    """An argument's name in a specification with its roles replaced: ``tile_k`` of
    ``tile_<k>``."""
    for role, letter in letters.items():
        name = name.replace(role, letter)
    return name


def tensors(gemm: Gemm) -> dict[Role, str]:
    """The tensors' names by role, in the order a, b, c."""
    return {"a": gemm.a.tensor, "b": gemm.b.tensor, "c": gemm.c.tensor}


def extents(gemm: Gemm) -> dict[str, str]:
    """Each letter and the parameter that counts its values: row, column, contracted, batches."""
    tiled, batched = roles(gemm), batches(gemm)
    names = (gemm.c.tensor, gemm.a.tensor, gemm.b.tensor)
    return {x: extent_of(x, tiled, batched, names) for x in (*tiled, *batched)}


def strides(access: Access, gemm: Gemm) -> dict[str, str]:
    """The stride parameter of each batch letter of a tensor; none for its last letter, which is
    contiguous."""
    known = batches(gemm)
    return {x: stride_name(access.tensor, x) for x in access.indices[:-1] if x in known}
