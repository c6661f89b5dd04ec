"""Which terms of the contraction a block sums: all of them, or its part's."""

from __future__ import annotations

from dataclasses import dataclass

from gemmgen.ir import names
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.nodes import Kernel


@dataclass(frozen=True)
class Terms:
    """From ``start`` below ``stop``; a part may be empty, and then starts behind its stop."""

    start: Expr
    stop: Expr


def terms_of(kernel: Kernel, letter: str) -> Terms:
    """The range of ``letter`` that a block of ``kernel`` sums over."""
    if kernel.work.parts == 1:
        return Terms(Int(0), Var(names.extent(letter)))
    return Terms(names.start(letter), names.stop(letter))
