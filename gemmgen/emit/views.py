"""What the template of a node sees: its fields, expressions as C, and what ``VIEWS`` adds to them.

A template decides nothing: a flag is a list of one item or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import cast, get_args

from gemmgen.emit.ctext import c_text
from gemmgen.emit.ctypes import (
    REGISTERS,
    STORED,
    fragment_type,
    register_type,
)
from gemmgen.emit.pointers import address, begin_address
from gemmgen.ir.barriers import BARRIER, BarrierArray
from gemmgen.ir.control import Assign, Define
from gemmgen.ir.expr import Binary, Element, Expr
from gemmgen.ir.lane_matrices import (
    OperandArray,
    SplitMatrices,
)
from gemmgen.ir.thread_code import Advance, CountArrival, Invoke, Move, Point, RegisterArray
from gemmgen.ir.warp_matrices import FragmentArray
from gemmgen.ir.warpgroup_matrices import DescribeMatrix

View = dict[str, object]
"""What a template sees, by its names there."""

_EXPRESSIONS = frozenset(get_args(Expr))


def fields_view(node: object) -> View:
    """A node's fields as templates see them."""
    return {name: _shown(getattr(node, name)) for name in _names(type(node))}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _shown(value: object) -> object:
    """An expression as C, a flag as one item or none."""
    if type(value) in _EXPRESSIONS:
        return c_text(cast("Expr", value))
    if isinstance(value, bool):
        return range(value)
    if isinstance(value, tuple):
        return [_shown(part) for part in cast("tuple[object, ...]", value)]
    return value


def _declared(*nodes: Define | RegisterArray | BarrierArray) -> View:
    return {"together": [fields_view(node) for node in nodes]}


def _define(*nodes: Define) -> View:
    kind = nodes[0].kind
    return {
        "constant": range(not nodes[0].mutable),
        "kind": STORED[kind] if kind == "i32" else kind,
        **_declared(*nodes),
    }


def _register_array(*nodes: RegisterArray) -> View:
    return {"type": STORED[nodes[0].dtype], **_declared(*nodes)}


def _fragment_array(node: FragmentArray) -> View:
    return {"type": fragment_type(node.dtype), "registers": REGISTERS[node.dtype]}


def _operand_array(node: OperandArray) -> View:
    return {"type": register_type(node.dtype)}


def _split_matrices(node: SplitMatrices) -> View:
    return {
        "to": [address(node.part(number)) for number in range(node.parts)],
        "from": address(node.source),
    }


def _describe_matrix(node: DescribeMatrix) -> View:
    return {"first": begin_address(node.first), "suffix": "_mn_major" if node.mn_major else ""}


def _assign(node: Assign) -> View:
    """``target += value`` where it is added to itself; the same for ``^=``."""
    match node.value:
        case Binary("+" | "^" as operator, left, right) if c_text(left) == _shown(node.target):
            return {"operator": operator, "value": c_text(right)}
        case _:
            return {"operator": ""}


def _count_arrival(node: CountArrival) -> View:
    return {"together": range(not node.alone)}


def _move(node: Move) -> View:
    return {"to": address(node.target), "from": address(node.source)}


def _invoke(node: Invoke) -> View:
    given = zip(node.function.parameters, node.arguments, strict=True)
    shown = (
        address(argument) if isinstance(argument, Element) and not to.shape else c_text(argument)
        for to, argument in given
    )
    results = node.function.results
    return {
        "name": node.function.name,
        "arguments": [*shown, *results],
        "declared": [", ".join(results)] if results else [],
    }


def _advance(node: Advance) -> View:
    return {"sign": "-" if node.back else "+"}


def _point(node: Point) -> View:
    return {"type": STORED[node.dtype]}


def _barrier_array(*nodes: BarrierArray) -> View:
    return {"alignment": BARRIER, **_declared(*nodes)}


VIEWS: dict[type, Callable[..., View]] = {
    Assign: _assign,
    CountArrival: _count_arrival,
    Define: _define,
    RegisterArray: _register_array,
    FragmentArray: _fragment_array,
    OperandArray: _operand_array,
    SplitMatrices: _split_matrices,
    DescribeMatrix: _describe_matrix,
    Move: _move,
    Invoke: _invoke,
    Advance: _advance,
    Point: _point,
    BarrierArray: _barrier_array,
}
"""What a template needs besides the fields of its node, which has no statements within it."""
