"""Boxes of tensors, interpreted: which of their elements there are, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from gemmgen.interpreter.checked_memory import Elements, FlatMemory
from gemmgen.interpreter.code import Code
from gemmgen.interpreter.machine import Boxes
from gemmgen.ir.expr import Var
from gemmgen.numerics.operators import Bools, Ints


def boxes_of(tensor: str, code: Code) -> Boxes:
    """The boxes of a tensor, by its map in this call."""
    interface = code.interface
    (found,) = (one for one in interface.maps if one.tensor == tensor)
    dimensions = interface.map_dimensions(found)

    def number(name: str) -> int:
        return cast(int, code.expression(Var(name)).known)

    strides = [1 if one.stride is None else number(one.stride) for one in dimensions]
    sizes = [number(one.size) for one in dimensions]
    return Boxes(code.scope.array(tensor).memory, tuple(sizes), tuple(strides), found.box)


def places(boxes: Boxes, at: Sequence[int], lane: int) -> tuple[Bools, Ints]:
    """Which elements of a box, the first dimension innermost, are inside the tensor, and where
    these are in its memory."""
    memory = boxes.tensor
    assert isinstance(memory, FlatMemory)
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


def loaded(boxes: Boxes, at: Sequence[int], lane: int) -> Elements:
    """The elements of a box; zeros outside the tensor."""
    memory = boxes.tensor
    assert isinstance(memory, FlatMemory)
    inside, there = places(boxes, at, lane)
    values = np.zeros(inside.size, memory.data.dtype)
    values[inside] = memory.data[there]
    return cast(Elements, values)
