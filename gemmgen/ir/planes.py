"""Planes of parts in scratch memory: where a pre-pass leaves what it has split, and the scales of
the rows that it has scaled.

A tensor's parts lie one plane after another.  Each plane has the tensor's rows, and each row
begins at a multiple of 16 bytes, as a tensor map asks.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.tensor_map import ALIGNMENT

WRITTEN = "planes"
"""The parameter of the pre-pass that is where they lie."""


SCALES = "{tensor}_scales"
"""What the accumulators are multiplied by: the inverses of the scales of a tensor's rows, or, if it
lies along them in memory, columns."""
SCALED = "scales"
"""The pre-pass's parameter for them."""

PRE_PASS = "{kernel}_split"
"""The pre-pass of a kernel that reads parts of its operands."""
ROWS_PRE_PASS, COLUMNS_PRE_PASS = f"{PRE_PASS}_rows", f"{PRE_PASS}_columns"
"""Those that scale the rows, or the columns, of a matrix."""
PRE_PASSES = (PRE_PASS, ROWS_PRE_PASS, COLUMNS_PRE_PASS)


@record
class Scales:
    """Of ``source``: one for each of ``extent`` (by name), the rows of its matrix, or else the
    columns."""

    source: str
    extent: str
    rows: bool


@record
class Planes:
    """``count`` planes with the parts of ``source``, whose matrix has this many ``rows`` and
    ``columns`` (extents, by name).  ``scaled_by`` is the parameter with the scales, if there are
    any.
    """

    source: str
    count: int
    rows: str
    columns: str
    scaled_by: str = ""

    @property
    def pitch(self) -> str:
        """The launcher's name of the elements from a row to the next."""
        return f"{self.source}_pitch"

    @property
    def plane(self) -> str:
        """And of those from a plane to the next."""
        return f"{self.source}_plane"


def unit(dtype: DType) -> int:
    """The length of a plane's rows is a multiple of this many elements."""
    return ALIGNMENT // BYTES[dtype]


def pitch_of(columns: int, dtype: DType) -> int:
    """Elements from a row of a plane to the next."""
    return -(-columns // unit(dtype)) * unit(dtype)
