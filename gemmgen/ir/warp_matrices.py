"""Nodes of lowered code for tensor cores: what a warp loads, multiplies and stores together."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Element, Expr

Line = Literal["row", "col"]
"""What is contiguous in a fragment's memory: its rows or its columns."""


@record
class FragmentArray:
    """A lane's share of fragments of 16 x 16, ``sizes`` of them; opaque, as which lane keeps which
    element is the hardware's.

    ``dtype`` is the elements'. A last index, the register's, may be given for accumulators alone,
    which are ``wide`` where they are moved 16 bytes at a time.
    """

    SYNTAX = "{name}{shape} {dtype}"

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    sizes: tuple[int, ...]
    zero: bool = False
    wide: bool = False


@record
class LoadFragment:
    """A warp reads 16 x 16 elements of shared memory from ``source`` on, in lines ``pitch`` apart,
    into the fragment ``target``: one of operand ``side``.

    All lanes of a warp come to it with the same addresses; so it is with the next two.
    """

    SYNTAX = "{target} = {source}"

    target: Element
    source: Element
    pitch: Expr
    side: Literal["a", "b"]
    line: Line
    dtype: DType


@record
class MultiplyFragments:
    """``sum += a * b`` of a warp's fragments, which were loaded by these lines."""

    SYNTAX = "{sum} += {a} * {b}"

    sum: Element
    a: Element
    b: Element
    a_line: Line
    b_line: Line
    dtype: DType


@record
class StoreFragment:
    """A warp writes a fragment of accumulators to shared memory, in lines ``pitch`` apart."""

    SYNTAX = "{target} = {source}"

    target: Element
    source: Element
    pitch: Expr
    line: Line
