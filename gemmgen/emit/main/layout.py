"""How the host program lays its tensors out, and the arithmetic of their elements' places."""

from __future__ import annotations

import textwrap
from functools import reduce

from gemmgen.base.record import record
from gemmgen.emit.ctext import c_text
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.line_breaks import WIDTH
from gemmgen.emit.printing import printed
from gemmgen.emit.views import View
from gemmgen.ir.dtypes import DTYPES, RAW, ROUNDED, DType
from gemmgen.ir.expr import Binary, BinaryOp, Expr, Int, Var, Wide
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.planes import unit

OWN = (*RAW, *ROUNDED)
"""Types with a type of their own on the host; a kernel takes their bits."""


@record
class PackedStep:
    """A leading dimension or a stride: its type, and the value that packs a tensor."""

    type: str
    name: str
    value: str


def paragraph(template: str, view: View) -> list[str]:
    """The lines of a comment, filled."""
    return textwrap.wrap(" ".join(printed(template, view).split()), WIDTH - len("    // "))


def number_type(dtype: DType) -> str:
    """The C++ type of a number on the host."""
    return f"host::{dtype}" if dtype in OWN else DTYPES[dtype].stored


def element_types(param: Param, stored: str) -> list[str]:
    """An element on the host, and what the launcher takes if that is another type."""
    number = number_type(param.dtype)
    return [number, stored] if param.dtype in OWN else [number]


def steps(interface: Interface, param: Param) -> list[PackedStep]:
    """What packs a tensor in the order of its letters, the innermost first: each letter's elements
    are as far apart as those after it take, or a little more where the launcher wants multiples."""
    names, found = interface.steps(param), list[PackedStep]()
    extents = interface.extent_names()
    for at in reversed(range(len(names) - 1)):
        name = names[at]
        if name is None or name in extents:  # a schedule that assumes lda == K
            continue
        packed = _span(interface, param, at + 1)
        kind = "int" if name in dict(interface.pitch).values() else "long long"
        found.append(PackedStep(kind, name, _rounded(packed, interface.divisor(name))))
    return found


def elements(interface: Interface, param: Param) -> str:
    """The number of elements that a tensor takes, gaps included."""
    return c_text(_span(interface, param, 0))


def place(interface: Interface, param: Param) -> str:
    """The index of the element whose letters have their own names: ``(long long)m * ldc + n``."""
    terms = [
        Var(letter) if step is None else _times(Var(letter), step)
        for letter, step in zip(param.indices, interface.steps(param), strict=True)
    ]
    return c_text(chain("+", *terms))


def chain(op: BinaryOp, first: Expr, *others: Expr) -> Expr:
    """``first op second op ...``, grouped from the left."""
    return reduce(lambda left, right: Binary(op, left, right), others, first)


def _span(interface: Interface, param: Param, at: int) -> Expr:
    """The elements from one index of the letter before ``at`` to the next."""
    extent, step = Var(interface.extent(param.indices[at])), interface.steps(param)[at]
    return extent if step is None else _times(extent, step)


def _times(number: Var, step: str) -> Expr:
    return Wide(number) * Var(step)


def _rounded(size: Expr, divisor: int) -> str:
    """``size``, or the next multiple of what it must be divisible by."""
    if divisor == 1:
        return c_text(size)
    by = Int(divisor)
    up = (size + (divisor - 1)) / by
    return c_text(up * by)


def tile_count(interface: Interface) -> str:
    """How many tiles C has, those that complete clusters included, as C."""
    return c_text(chain("*", *_tiles(interface)))


def _tiles(interface: Interface) -> list[Expr]:
    """How many tiles, or clusters, cover each extent of C, how many matrices there are, and the
    tiles of a cluster."""
    sides = interface.cluster or (1,) * len(interface.tiles)
    found: list[Expr] = []
    for (name, size), blocks in zip(interface.tiles, sides, strict=True):
        last = Var(name) - 1
        found.append(last / (size * blocks) + Wide(Int(1)))
    several = [Int(interface.cluster_blocks)] if interface.cluster else []
    return [*found, *(Var(name) for _, name in interface.batches), *several]


def scratch_count(param: Param) -> str:
    """The elements of scratch memory, as C."""
    if param.scales is not None:
        return param.scales.extent
    if param.planes is None:
        return f"tiles * {param.per_tile}"
    own, row = param.planes, unit(param.dtype)
    return f"{own.count}LL * {own.rows} * (({own.columns} + {row - 1}) / {row} * {row})"


def scratch_type(param: Param) -> str:
    return "unsigned" if param.kind == "counter" else STORED[param.dtype]
