"""The integers and scalars that a kernel is called with at a shape."""

from __future__ import annotations

from math import lcm

from gemmgen.errors import UsageError
from gemmgen.interface import Interface, MultipleOf, Param
from gemmgen.ir.problem import Problem

Shape = tuple[int, int, int]
"""Rows and columns of C, and terms of each sum."""


def arguments_of(
    interface: Interface, problem: Problem, shape: Shape, *, beta: float = 0.0
) -> dict[str, int | float]:
    """Dense matrices: each leading dimension is its row's length, or the next that is allowed.

    ``alpha`` and further scalars are 1.  Raises ``UsageError`` for a shape that the kernel does not
    take.
    """
    if min(shape) < 1:
        raise UsageError("a shape to count at has extents of at least 1")
    letters = (problem.m, problem.n, problem.k)
    extents = {x.upper(): size for x, size in zip(letters, shape, strict=True)}
    values: dict[str, int | float] = dict(extents)
    values |= {p.name: _pitch(interface, p, extents) for p in interface.params if p.kind == "ld"}
    addresses = {p.name: 0 for p in interface.params if p.kind == "tensor"}
    broken = interface.violated({n: int(v) for n, v in values.items()} | addresses)
    if broken:
        told = ", ".join(requirement.text() for requirement in broken)
        size = "x".join(map(str, shape))
        raise UsageError(f"the kernel does not take the shape {size}: it requires {told}")
    scalars = (p.name for p in interface.params if p.kind == "scalar")
    return values | {name: beta if name == "beta" else 1.0 for name in scalars}


def _pitch(interface: Interface, param: Param, extents: dict[str, int]) -> int:
    indices = {p.name: p.indices for p in interface.params}
    rows = [
        extents[indices[tensor][-1].upper()]
        for tensor, pitch in interface.pitch
        if pitch == param.name
    ]
    by = lcm(
        *(
            r.divisor
            for r in interface.requirements
            if isinstance(r, MultipleOf) and r.name == param.name
        )
    )
    return -(-max(rows) // by) * by
