"""The problem: what is computed, whatever the schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gemmgen.base.record import record
from gemmgen.base.source import indexed
from gemmgen.ir.dtypes import DType, Types, computed_in, unstated
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.parameters import extent_of, ld_name, stride_name

Role = Literal["a", "b", "c"]


@record
class Tensor:
    """A tensor in global memory; ``letters`` in storage order, the last one contiguous.

    Without the batch letters of its problem it is a matrix (or a vector, or a number).
    """

    SYNTAX = "{name}{letters}"

    name: str
    letters: tuple[str, ...]
    dtype: DType = "f32"

    @property
    def text(self) -> str:
        """``A[m, k]``."""
        return indexed(self.name, self.letters)

    @property
    def contiguous(self) -> str:
        """The letter whose neighbors are neighbors in memory."""
        return self.letters[-1]


@record
class Scaling:
    """The factors of an operand's blocks: ``SA[k/128, m]`` of A has one for each 128 elements along
    k of each row m.  ``tensor`` is f32, ``of`` is the operand's name."""

    SYNTAX = "{tensor} of {of}"

    tensor: Tensor
    of: str


@record
class Problem:
    """``c = epilogue(acc)`` with ``acc[m, n] = sum over k of a[m, k] * b[k, n]``.

    ``m``, ``n``, ``k`` are the letters in the roles row, column and contracted: ``m`` is in a and
    c, ``n`` in b and c, ``k`` in a and b.  ``batch`` letters index the matrices, in the order of c:
    each is in c and in a, in b, or in both.  The factors of the ``gemm`` line are a and b, or b and
    a where they are ``swapped``.  With ``scales`` each element of a and of b is multiplied by the
    factor of its block, if it has one.
    """

    SYNTAX = "{c} = {a} * {b} over {m}, {n}, {k}"

    c: Tensor
    a: Tensor
    b: Tensor
    m: str
    n: str
    k: str
    epilogue: Expr
    accumulate: DType = "f32"
    others: tuple[tuple[str, DType], ...] = ()
    """Of the epilogue's own tensors, those that are stored otherwise than ``unstated`` says."""
    batch: tuple[str, ...] = ()
    swapped: bool = False
    scales: tuple[Scaling, ...] = ()

    @property
    def factors(self) -> tuple[Tensor, Tensor]:
        """The operands in the order of the ``gemm`` line."""
        return (self.b, self.a) if self.swapped else (self.a, self.b)

    @property
    def written(self) -> Problem:
        """The same problem with the roles as the ``gemm`` line has them."""
        if not self.swapped:
            return self
        return replace(self, a=self.b, b=self.a, m=self.n, n=self.m, swapped=False)

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the first factor and of the second, contracted, batches: the order in
        which a shape gives its extents."""
        free = (self.n, self.m) if self.swapped else (self.m, self.n)
        return (*free, self.k, *self.batch)

    def extent(self, letter: str) -> str:
        """The parameter that counts a letter's values: ``M`` of ``m``, ``size_b`` of a batch."""
        names = (self.c.name, self.a.name, self.b.name)
        return extent_of(letter, (self.m, self.n, self.k), self.batch, names)

    def matrix(self, letters: tuple[str, ...]) -> tuple[str, ...]:
        """The letters of one matrix: those that number it are left out."""
        return tuple(letter for letter in letters if letter not in self.batch)

    def pitch(self, tensor: Tensor) -> tuple[str, str] | None:
        """The letter whose stride is a matrix's leading dimension, and that parameter."""
        matrix = self.matrix(tensor.letters)
        return (matrix[0], ld_name(tensor.name)) if len(matrix) == 2 else None

    def scaling(self, tensor: str) -> Scaling | None:
        """The scaling with this tensor of factors."""
        return next((one for one in self.scales if one.tensor.name == tensor), None)

    def strides(self, tensor: Tensor) -> dict[str, str]:
        """Per batch letter the parameter that parts a tensor's matrices; none for a last letter,
        whose neighbors are neighbors in memory."""
        batches = (letter for letter in tensor.letters[:-1] if letter in self.batch)
        return {letter: stride_name(tensor.name, letter) for letter in batches}

    def operand(self, role: Role) -> Tensor:
        """The tensor with the role ``a``, ``b`` or ``c`` in the ``gemm`` line."""
        first, second = self.factors
        return {"a": first, "b": second, "c": self.c}[role]

    @property
    def types(self) -> Types:
        return Types(self.a.dtype, self.b.dtype, self.c.dtype, self.accumulate)

    @property
    def numbers(self) -> DType:
        """What the epilogue is computed in."""
        return computed_in(self.accumulate, self.c.dtype)

    def dtype(self, tensor: str) -> DType:
        """What a tensor's elements are stored as: an operand's, or one's of the epilogue."""
        known: dict[str, DType] = {t.name: t.dtype for t in (self.a, self.b, self.c)}
        known |= {scaling.tensor.name: scaling.tensor.dtype for scaling in self.scales}
        known |= dict(self.others)
        return known.get(tensor, unstated(self.c.dtype))

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
    return Var("alpha") * Var("acc") + Var("beta") * old
