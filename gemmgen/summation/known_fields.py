"""Fields of the IR's nodes that are read for the summation order, or known to leave it as it is.

A field that is not here, if it is not at its default, becomes part of the order's value: a new
directive's field makes schedules differ until it is decided what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from gemmgen.ir.buffers import AxisSpread, Buffer, Spread
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
from gemmgen.ir.problem import Problem, Tensor

KNOWN: dict[type, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        Program: "problem target splits kernels facts intent",
        Problem: "c a b m n k epilogue accumulate others batch swapped",
        Tensor: "name letters dtype",
        Split: "dst src parts origins",
        Kernel: "name work buffers body bounds producers",
        Work: "tile raster parts reduce groups origins batch persistent order overlap cluster",
        Producers: "warpgroups origins pingpong",
        Buffer: "name role dtype shape of pad stages atom_width spare swizzle spread parts origins",
        Spread: "axes x atom k_layout by_warp",
        AxisSpread: "letter warps pieces lanes width rounds",
        Init: "dst",
        Copy: "dst src width mode evict vectors origins",
        Contract: "acc a b order atom into parts products origins",
        Promote: "dst part every origins",
        Map: "dst value width origins through",
        Loop: "letter body unroll origins step",
        Pipeline: "letter step produce consume unroll residue origins",
    }.items()
}


def unread(program: Program) -> tuple[str, ...]:
    """The fields of ``program``'s nodes that are not known, as ``Work.skew=2``."""
    found = (text for node in _nodes(program) for text in _unread(node))
    return tuple(dict.fromkeys(found))


def _unread(node: Any) -> Iterator[str]:
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name not in KNOWN[type(node)] and value != _default(field):
            yield f"{type(node).__name__}.{field.name}={value!r}"


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _nodes(value: object) -> Iterator[object]:
    """The nodes of the kinds above in ``value``, at any depth."""
    if type(value) in KNOWN:
        yield value
        inner: Iterable[object] = (getattr(value, x.name) for x in fields(value))  # type: ignore
        for each in inner:
            yield from _nodes(each)
    elif isinstance(value, tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _nodes(each)  # pyright: ignore[reportUnknownArgumentType]
