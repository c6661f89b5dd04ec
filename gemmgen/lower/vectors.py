"""The widths of vector accesses and their names: ``VEC``, or ``A_VEC`` and ``C_VEC`` where a kernel
has several."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.record import record
from gemmgen.ir.buffers import Role, Space
from gemmgen.ir.dtypes import DType, widest, widths
from gemmgen.ir.edit import copies, copy_outward
from gemmgen.ir.expr import Var
from gemmgen.ir.names import WORKSPACE
from gemmgen.ir.nodes import Copy, Kernel, Map


@record
class Vector:
    """An access of several elements: ``holder`` is the tile, fragment or tensor that it fills."""

    tensor: str
    holder: str
    width: int
    apart: str = ""
    """What its name has where the tensor's accesses have several widths: ``A_FRAG_VEC``."""


def vectors_of(kernel: Kernel, accumulators: int) -> dict[str, tuple[Var, int]]:
    """The name and the width of each vector access, by its holder; ``accumulators`` are moved at
    once.

    Accesses of one width share a name: the whole kernel's ``VEC``, else a tensor's, else
    ``A_VEC`` in global memory, ``A_FRAG_VEC`` of a fragment, and ``C_SHARED_VEC`` of what C passes
    through.
    """
    wide = [vector for vector in _accesses(kernel, accumulators) if vector.width > 1]
    if len({vector.width for vector in wide}) == 1:
        return {vector.holder: (Var("VEC"), vector.width) for vector in wide}
    found: dict[str, tuple[Var, int]] = {}
    for vector in wide:
        own = {other.width for other in wide if other.tensor == vector.tensor}
        apart = vector.apart if len(own) > 1 else ""
        found[vector.holder] = (Var(f"{vector.tensor}{apart}_VEC"), vector.width)
    return found


def _accesses(kernel: Kernel, accumulators: int) -> Iterator[Vector]:
    outward = copy_outward(kernel)
    for copy in copies(kernel):
        width = store_width(kernel, copy) if copy == outward else copy.width
        apart = "_FRAG" if kernel.buffer(copy.dst).role is Role.FRAGMENT else ""
        yield Vector(_tensor(kernel, copy.src), copy.dst, width, apart)
    for statement in kernel.body:
        if isinstance(statement, Map):
            tensor, width = _tensor(kernel, statement.dst), store_width(kernel, statement)
            yield Vector(tensor, statement.dst, width, "_SHARED" if outward else "")
    if kernel.work.parts > 1 and kernel.work.reduce == "ordered":
        yield Vector("PART", WORKSPACE.name, accumulators)


def _tensor(kernel: Kernel, name: str) -> str:
    """What the name of an access to a buffer begins with."""
    buffer = kernel.buffer(name)
    return buffer.tensor if buffer.space is Space.SHARED else name


def store_width(kernel: Kernel, node: Map | Copy) -> int:
    """Elements of the output that are stored at once: fewer where a temporary is wider than C."""
    return min(node.width, widest(kernel.buffer(node.dst).dtype))


def accumulator_width(row: int, accumulate: DType) -> int:
    """Of ``row`` neighbouring accumulators as many as move at once."""
    return max(width for width in (1, *widths(accumulate)) if row % width == 0)
