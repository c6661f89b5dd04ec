"""Where the matrices of a batch lie: one behind the other, row by row in turn, or in one place."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm, prod
from typing import Literal

from gemmgen.ir.interface import Interface, MultipleOf, Param
from gemmgen.pipeline import Emitted

Layout = Literal["behind", "within", "shared"]
"""``behind``: a matrix begins behind the end of the one before.  ``within``: the matrices' first
rows stand side by side, then their second ones.  ``shared``: an input's matrices are one, and the
output's lie behind one another in the reversed order of their letters."""

LAYOUTS: tuple[Layout, ...] = ("behind", "within", "shared")


def lay_out(
    emitted: Emitted, values: Mapping[str, int], pad: int, layout: Layout
) -> dict[str, int]:
    """``values`` (extents, leading dimensions) with a stride for each batch letter of each tensor.

    Between two matrices are ``pad`` elements, and a few more from tensor to tensor.  ``within``
    lengthens leading dimensions; where one is assumed, the matrices lie behind one another.
    """
    found = dict(values)
    for number, param in enumerate(p for p in emitted.interface.params if p.kind == "tensor"):
        _place(emitted, param, found, pad + 3 * number if pad else 0, layout)
    return found


def shared_letters(interface: Interface, param: Param, layout: Layout) -> tuple[str, ...]:
    """The letters along which a tensor's matrices are one."""
    if layout != "shared" or param.written:
        return ()
    return tuple(letter for letter, _ in _strides(interface, param))


def _strides(interface: Interface, param: Param) -> list[tuple[str, str]]:
    """The batch letters of a tensor that have a stride, and their parameters, outermost first."""
    known = dict(interface.batches)
    steps = zip(param.indices, interface.steps(param), strict=True)
    return [(letter, step) for letter, step in steps if letter in known and step is not None]


def _place(
    emitted: Emitted, param: Param, values: dict[str, int], pad: int, layout: Layout
) -> None:
    interface = emitted.interface
    strides = _strides(interface, param)
    ld = dict(interface.pitch).get(param.name)
    batches = [letter for letter, _ in strides]
    sizes = {x: values[interface.extent(x)] for x in param.indices}
    matrix = [x for x in param.indices[:-1] if x not in dict(interface.batches)]
    span = values[ld] * sizes[matrix[0]] if ld and matrix else sizes[param.indices[-1]]
    free = ld is not None and not any(a.name == ld and a.equals for a in emitted.schedule.assumes)
    if layout == "within" and free and ld is not None and ld not in interface.extent_names():
        by = lcm(*(divisor(emitted, name) for name in (ld, *(name for _, name in strides))))
        row = -(-(values[ld] + pad) // by) * by
        values[ld], span, pad = row * max(prod(sizes[x] for x in batches), 1), row, 0
    if layout == "shared" and not param.written:
        values |= {name: 0 for _, name in strides}
        return
    for letter, name in strides if layout == "shared" else reversed(strides):
        by = divisor(emitted, name)
        values[name] = -(-(span + pad) // by) * by
        span = values[name] * sizes[letter]


def divisor(emitted: Emitted, name: str) -> int:
    """What a leading dimension or a stride must be a multiple of."""
    required = emitted.interface.requirements
    known = [r.divisor for r in required if isinstance(r, MultipleOf) and r.name == name]
    assumed = [a.divisor for a in emitted.schedule.assumes if a.name == name and a.divisor]
    return lcm(*known, *assumed)
