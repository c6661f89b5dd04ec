"""Fields of the IR's nodes that are read for the summation order, or leave it as it is.

The first are listed here; the others say so themselves, where they are declared (``keeps_order``).
Any other field, if it is not at its default, becomes part of the order's value: a new directive's
field makes schedules differ until it is decided what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from gemmgen.ir.buffers import AxisSpread, Buffer, Spread
from gemmgen.ir.kept_order import is_order_kept
from gemmgen.ir.nodes import (
    Contract,
    Copy,
    Init,
    Kernel,
    Loop,
    Map,
    Pipeline,
    Producers,
    Program,
    Promote,
    Split,
    Work,
)
from gemmgen.ir.problem import Problem, Scaling, Tensor

READ: dict[type, frozenset[str]] = {
    kind: frozenset((*names.split(), "origins"))
    for kind, names in {
        Program: "problem target splits kernels facts intent",
        Problem: "c a b m n k epilogue accumulate others batch swapped scales",
        Tensor: "name letters dtype",
        Scaling: "tensor of",
        Split: "dst src parts scaled",
        Kernel: "name work buffers body bounds producers",
        Work: "tile parts reduce groups batch",
        Producers: "",
        Buffer: "name role dtype shape of stages spread parts",
        Spread: "axes x atom k_layout",
        AxisSpread: "letter warps pieces lanes width",
        Init: "dst",
        Copy: "dst src",
        Contract: "acc a b atom into parts products",
        Promote: "dst part every scales",
        Map: "dst value",
        Loop: "letter body unroll step",
        Pipeline: "letter step produce consume unroll residue",
    }.items()
}
"""By each node that is looked at; ``origins`` name directives, and change nothing."""


def unread(program: Program) -> tuple[str, ...]:
    """The fields of ``program``'s nodes that are not known, as ``Work.skew=2``."""
    found = (text for node in _nodes(program) for text in _unread(node))
    return tuple(dict.fromkeys(found))


def _unread(node: Any) -> Iterator[str]:
    for field in fields(node):
        value = getattr(node, field.name)
        known = field.name in READ[type(node)] or is_order_kept(field)
        if not known and value != _default(field):
            yield f"{type(node).__name__}.{field.name}={value!r}"


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _nodes(value: object) -> Iterator[object]:
    """The nodes of the kinds above in ``value``, at any depth."""
    if type(value) in READ:
        yield value
        inner: Iterable[object] = (getattr(value, x.name) for x in fields(value))  # type: ignore
        for each in inner:
            yield from _nodes(each)
    elif isinstance(value, tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _nodes(each)  # pyright: ignore[reportUnknownArgumentType]
