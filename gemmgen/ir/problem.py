"""The problem: what is computed, whatever the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gemmgen.ir.dtypes import DType, Types
from gemmgen.ir.expr import Binary, Element, Expr, Var

Role = Literal["a", "b", "c"]


@dataclass(frozen=True)
class Tensor:
    """A matrix in global memory; ``letters`` in storage order, the last one contiguous."""

    name: str
    letters: tuple[str, ...]
    dtype: DType = "f32"

    @property
    def contiguous(self) -> str:
        """The letter whose neighbours are neighbours in memory."""
        return self.letters[-1]

    @property
    def strided(self) -> str:
        """The letter that the leading dimension multiplies."""
        return self.letters[0]


@dataclass(frozen=True)
class Problem:
    """``c = epilogue(acc)`` with ``acc[m, n] = sum over k of a[m, k] * b[k, n]``.

    ``m``, ``n``, ``k`` are the letters in the roles row, column and contracted: ``m`` stands in a
    and c, ``n`` in b and c, ``k`` in a and b.
    """

    c: Tensor
    a: Tensor
    b: Tensor
    m: str
    n: str
    k: str
    epilogue: Expr
    accumulate: DType = "f32"
    others: tuple[tuple[str, DType], ...] = ()
    """Of the epilogue's own tensors, those that are stored otherwise than c."""

    def operand(self, role: Role) -> Tensor:
        """The tensor in the place ``a``, ``b`` or ``c`` of the ``gemm`` line."""
        return {"a": self.a, "b": self.b, "c": self.c}[role]

    @property
    def types(self) -> Types:
        return Types(self.a.dtype, self.b.dtype, self.c.dtype, self.accumulate)

    def dtype(self, tensor: str) -> DType:
        """What a tensor's elements are stored as: an operand's, or one's of the epilogue."""
        known = {t.name: t.dtype for t in (self.a, self.b, self.c)} | dict(self.others)
        return known.get(tensor, self.c.dtype)

    def role_of(self, letter: str) -> Literal["m", "n", "k"]:
        """The role of a letter; its capital names the constants BM, TN, ..."""
        if letter == self.m:
            return "m"
        return "n" if letter == self.n else "k"

    def free(self, role: Literal["a", "b"]) -> str:
        """The letter that ``a`` or ``b`` shares with c."""
        return self.m if role == "a" else self.n


def default_epilogue(c: Tensor) -> Expr:
    """``alpha * acc + beta * C[m, n]``: what a schedule without ``fuse_epilogue`` computes."""
    old = Element(c.name, tuple(Var(letter) for letter in c.letters))
    return Binary("+", Binary("*", Var("alpha"), Var("acc")), Binary("*", Var("beta"), old))
