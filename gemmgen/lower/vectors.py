"""The widths of vector accesses and their names: ``VEC``, or ``A_VEC`` and ``C_VEC`` where a kernel
has several."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType, widest, widths
from gemmgen.ir.edit import copies
from gemmgen.ir.expr import Var
from gemmgen.ir.nodes import Kernel, Map

WORKSPACE = "workspace"


@record
class Vector:
    """An access of several elements: ``holder`` is the tile, fragment or tensor that it fills."""

    tensor: str
    holder: str
    width: int


def vectors_of(kernel: Kernel, sums: int) -> dict[str, tuple[Var, int]]:
    """The name and the width of each vector access, by its holder; ``sums`` are moved at once.

    Accesses of one width share a name: the whole kernel's ``VEC``, else a tensor's, else
    ``A_VEC`` in global memory and ``A_FRAG_VEC`` of a fragment.
    """
    wide = [vector for vector in _accesses(kernel, sums) if vector.width > 1]
    if len({vector.width for vector in wide}) == 1:
        return {vector.holder: (Var("VEC"), vector.width) for vector in wide}
    found: dict[str, tuple[Var, int]] = {}
    for vector in wide:
        own = {other.width for other in wide if other.tensor == vector.tensor}
        is_fragment = len(own) > 1 and vector.holder.endswith("_frag")
        name = f"{vector.tensor}_FRAG_VEC" if is_fragment else f"{vector.tensor}_VEC"
        found[vector.holder] = (Var(name), vector.width)
    return found


def _accesses(kernel: Kernel, sums: int) -> Iterator[Vector]:
    for copy in copies(kernel):
        yield Vector(copy.src.removesuffix("_shared"), copy.dst, copy.width)
    for statement in kernel.body:
        if isinstance(statement, Map):
            yield Vector(statement.dst, statement.dst, store_width(kernel, statement))
    if kernel.work.parts > 1 and kernel.work.reduce == "ordered":
        yield Vector("PART", WORKSPACE, sums)


def store_width(kernel: Kernel, node: Map) -> int:
    """Elements that are stored at once: a temporary's may be wider than C's, and fewer."""
    return min(node.width, widest(kernel.buffer(node.dst).dtype))


def sums_width(row: int, accumulate: DType) -> int:
    """Of ``row`` neighbouring sums as many as move at once."""
    return max(width for width in (1, *widths(accumulate)) if row % width == 0)
