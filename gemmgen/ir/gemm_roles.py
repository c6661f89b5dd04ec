"""The product that a kernel computes, from its interface."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.arithmetic import PLAIN, Arithmetic
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.dtypes import Types, sums_of
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.problem import Scaling, Tensor


@record
class Contraction:
    """A times B summed over ``k``, and C: the letters of rows, columns, the contraction, and of the
    batches in C's order; ``arithmetic`` is that of ``Interface``; ``scales`` are the factors of
    blocks of a and of b."""

    a: Param
    b: Param
    c: Param
    m: str
    n: str
    k: str
    batch: tuple[str, ...]
    arithmetic: Arithmetic = PLAIN
    scales: tuple[Scaling, ...] = ()

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters in the order of a shape's extents."""
        return (self.m, self.n, self.k, *self.batch)

    @property
    def types(self) -> Types:
        """The element types; accumulators are f64 if results are, else what their products give."""
        a, b, c = self.a.dtype, self.b.dtype, self.c.dtype
        return Types(a, b, c, "f64" if c == "f64" else sums_of(a, b))


def contraction(interface: Interface) -> Contraction:
    """The product of the first two inputs; the interface knows C's batch letters."""
    found = interface.tensors
    a, b = [param for param in found if not param.written][:2]
    (c,) = [param for param in found if param.written]
    batch = tuple(letter for letter, _ in interface.batches)
    m, n = (
        next(x for x in c.indices if x in factor.indices and x not in batch) for factor in (a, b)
    )
    k = next(x for x in a.indices if x in b.indices and x not in c.indices)
    scales = tuple(
        Scaling(Tensor(param.name, param.indices, param.dtype), factor.name)
        for param in found
        for factor in (a, b)
        if any(block(x) > 1 for x in param.indices)
        if {plain(x) for x in param.indices} == set(factor.indices)
    )
    return Contraction(a, b, c, m, n, k, batch, interface.arithmetic, scales)
