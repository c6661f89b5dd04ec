"""Addresses of elements, as a call is given them."""

from __future__ import annotations

from gemmgen.emit.ctext import c_text
from gemmgen.ir.expr import Element, Int


def address(element: Element) -> str:
    """A pointer to ``element``: an array's name means its first."""
    *outer, last = element.indices
    if last == Int(0):
        return c_text(Element(element.buffer, tuple(outer)))
    return f"&{c_text(element)}"


def begin_address(element: Element) -> str:
    """The address of a box in shared memory: ``A_shared[stage]`` where it begins with the tile."""
    begin = element
    while begin.indices[-1:] == (Int(0),):
        begin = Element(begin.buffer, begin.indices[:-1])
    return c_text(begin) if len(begin.indices) < len(element.indices) else address(begin)
