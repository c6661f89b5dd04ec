"""Whether names mean the same whenever a role comes to one place of its code."""

from __future__ import annotations

from gemmgen.prove import polynomials
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import (
    Binding,
    GlobalPlace,
    MatrixPlace,
    RegisterPlace,
    SharedPlace,
    VariableSlot,
    WalkScope,
)


def alike(one: WalkScope, other: WalkScope) -> bool:
    return one.names.keys() == other.names.keys() and all(
        _alike(value, other.names[name]) for name, value in one.names.items()
    )


def _alike(one: Binding, other: Binding) -> bool:
    if one is other:
        return True
    match one, other:
        case VariableSlot(), VariableSlot():
            return one.key == other.key
        case Polynomial(), Polynomial():
            return polynomials.same(one, other)
        case GlobalPlace(), GlobalPlace():
            return one.param is other.param and polynomials.same(one.offset, other.offset)
        case SharedPlace(), SharedPlace():
            return one.name == other.name and one.flat == other.flat and _same(one, other)
        case RegisterPlace(), RegisterPlace():
            return one.key == other.key and one.flat == other.flat and _same(one, other)
        case MatrixPlace(), MatrixPlace():
            own = (one.swizzle, one.stride, one.mn_major)
            return own == (other.swizzle, other.stride, other.mn_major) and _alike(
                one.place, other.place
            )
        case _:
            return False


def _same(one: SharedPlace | RegisterPlace, other: SharedPlace | RegisterPlace) -> bool:
    return len(one.first) == len(other.first) and all(map(polynomials.same, one.first, other.first))
