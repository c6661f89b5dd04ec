"""What the letters of the ``gemm`` line stand for, and the parameters named after them."""

from __future__ import annotations

from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import Role


def roles(gemm: Gemm) -> tuple[str, str, str]:
    """The row, the column and the contracted letter of a checked ``gemm`` line."""
    a, b = gemm.a.indices, gemm.b.indices
    (k,) = (letter for letter in a if letter in b)
    (m,) = (letter for letter in a if letter != k)
    (n,) = (letter for letter in b if letter != k)
    return m, n, k


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


def extent(letter: str) -> str:
    """The kernel parameter that counts a letter's values: ``M`` of ``m``."""
    return letter.upper()


def ld_name(tensor: str) -> str:
    """The kernel parameter that is a tensor's leading dimension: ``lda`` of ``A``."""
    return "ld" + tensor.lower()
