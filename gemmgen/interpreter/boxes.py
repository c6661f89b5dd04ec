"""Boxes of tensors, interpreted: which of their elements there are, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np

from gemmgen.interpreter.checked_memory import Elements, FlatMemory
from gemmgen.interpreter.code import Code
from gemmgen.interpreter.machine import Boxes
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Expr, Var
from gemmgen.ir.tensor_map import ALIGNMENT
from gemmgen.numerics.operators import Bools, Ints

ROW = 128
"""Bytes: rows of shared memory, whose numbers permute chunks."""


def boxes_of(of_map: Expr, code: Code) -> Boxes:
    """The boxes of a tensor, by its map in this call."""
    interface = code.interface
    assert isinstance(of_map, Var)
    (found,) = (one for one in interface.maps if one.parameter == of_map.name)
    dimensions = interface.map_dimensions(found)

    def number(name: str) -> int:
        return cast(int, code.expression(Var(name)).known)

    counts = {p.name for p in interface.params if p.kind in ("extent", "ld", "stride")}
    of_planes = interface.plane_values({name: number(name) for name in sorted(counts)})

    def known(name: str) -> int:
        return of_planes[name] if name in of_planes else number(name)

    strides = [1 if one.stride is None else known(one.stride) for one in dimensions]
    sizes = [-(-known(one.size) // one.block) for one in dimensions]
    memory = code.scope.array(found.tensor).memory
    return Boxes(memory, tuple(sizes), tuple(strides), found.box, found.swizzle)


def lies_at(boxes: Boxes, shared: FlatMemory, first: int) -> Ints:
    """Where in shared memory the elements of a box lie that begins at ``first``.

    TMA permutes chunks by bits of addresses, and an array begins where it must, nowhere
    better: at an odd multiple of the bytes that it is aligned to.
    """
    at = first + np.arange(prod(boxes.sides))
    return permuted(at, BYTES[shared.dtype], shared.aligned, boxes.swizzle)


def permuted(at: Ints, size: int, aligned: int, swizzle: int) -> Ints:
    """Where the elements of ``size`` bytes lie that would be ``at`` there without a swizzle, in an
    array at an odd multiple of the bytes that it is ``aligned`` to."""
    address = aligned + at * size
    moved = (address // ROW & (swizzle // ALIGNMENT or 1) - 1) * ALIGNMENT
    return cast(Ints, ((address ^ moved) - aligned) // size)


def places(boxes: Boxes, at: Sequence[int], lane: int) -> tuple[Bools, Ints]:
    """Which elements of a box, the first dimension innermost, are inside the tensor, and where
    these are in its memory; raises ``Trap`` if the box begins where none may."""
    memory = boxes.tensor
    assert isinstance(memory, FlatMemory)
    if at[0] * BYTES[memory.dtype] % ALIGNMENT:
        raise memory.trap(lane, at[0], f"no box begins here: no multiple of {ALIGNMENT} bytes")
    offset, inside = np.zeros((), np.int64), np.ones((), np.bool_)
    for start, size, stride, side in zip(at, boxes.sizes, boxes.strides, boxes.sides, strict=True):
        along = np.arange(start, start + side)
        inside = ((along >= 0) & (along < size))[(...,) + (None,) * inside.ndim] & inside
        offset = (along * stride)[(...,) + (None,) * offset.ndim] + offset
    there = cast(Ints, offset.reshape(-1)[inside.reshape(-1)])
    outside = (there < 0) | (there >= memory.size)
    if outside.any():
        raise memory.trap(lane, int(there[outside][0]), f"out of bounds of {memory.size}")
    return cast(Bools, inside.reshape(-1)), there


def padding(boxes: Boxes, at: Sequence[int], lane: int) -> Ints:
    """What a store of a box writes, too: where the elements are that are after a row, in the same
    unit of 16 bytes as its last ones.  They become zeros."""
    unit = ALIGNMENT // BYTES[boxes.tensor.dtype]
    row, *others = boxes.sizes
    if row % unit == 0:
        return np.empty(0, np.int64)
    longer = replace(boxes, sizes=(-(-row // unit) * unit, *others))
    inside, _ = places(boxes, at, lane)
    reached, there = places(longer, at, lane)
    return there[~inside[reached]]


def loaded(boxes: Boxes, at: Sequence[int], lane: int) -> Elements:
    """The elements of a box; zeros outside the tensor."""
    memory = boxes.tensor
    assert isinstance(memory, FlatMemory)
    inside, there = places(boxes, at, lane)
    values = np.zeros(inside.size, memory.data.dtype)
    values[inside] = memory.data[there]
    return cast(Elements, values)
