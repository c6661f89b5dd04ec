"""The terms of an element in a pre-pass, and the names of its parameters and variables."""

from __future__ import annotations

from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.expr import Element, Expr, Int, Var, Wide
from gemmgen.ir.param import Param
from gemmgen.ir.planes import WRITTEN, unit
from gemmgen.ir.thread_code import Node
from gemmgen.lower.types import computable, storable

ROWS, COLUMNS, SOURCE, PITCH, PARTS = map(Var, ("rows", "columns", "x", "ldx", WRITTEN))
ROW, COLUMN = Var("row"), Var("column")
_PART, _REST = Var("part"), Var("rest")


def note(param: Param, whole: str = "x") -> str:
    """What is done with ``whole``, for a comment."""
    first = f"x0 = {param.dtype}({whole})"
    return f"{first}, x1 = {param.dtype}({whole} - x0) and so on, a plane each"


def element() -> Element:
    """The element of the source at ``ROW`` and ``COLUMN``."""
    return Element(SOURCE.name, (Wide(ROW) * PITCH + COLUMN,))


def stored_terms(param: Param, whole: Expr) -> tuple[Node, ...]:
    """The terms of ``whole``, the element at ``ROW`` and ``COLUMN``, to their planes."""
    assert param.planes is not None
    size = Int(unit(param.dtype))
    rows = Wide(_PART) * ROWS + ROW
    columns = ((COLUMNS - 1) / size + 1) * size
    place = Element(PARTS.name, (rows * columns + COLUMN,))
    stored: Expr = storable(_REST, param.dtype)
    rounded = computable(stored, param.dtype)
    steps = (Assign(place, stored), Assign(_REST.name, _REST - rounded))
    count = Int(param.planes.count)
    return (
        Define(_REST.name, whole, "float", mutable=True),
        For[Node](_PART.name, Int(0), count, Int(1), steps, unroll=True),
    )
