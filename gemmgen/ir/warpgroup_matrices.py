"""Nodes for tensor cores that read both operands from shared memory (PTX: wgmma): what the 128
threads of a warpgroup multiply together, asynchronously.

A multiplication is issued, and goes on by itself.  Those issued since the last ``wgmma_commit``
are a group; groups end in their order.  Until a wait covers its group a multiplication reads its
operands and owns its accumulators: no thread may overwrite the one, or read or write the other. All
threads of the warpgroup execute each of these nodes, and the instructions around them.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.expr import Element, Expr

ROWS = 8
"""Rows of an operand that lie one after another, whatever is after them."""
UNIT = 16
"""Bytes that an address in a descriptor counts in."""


@record
class DescribeMatrix:
    """``name``: the descriptor of an operand's tile that begins at ``first`` in shared memory.

    Each of its rows, along m or n, has ``swizzle`` bytes along k (128, 64 or 32), whose chunks of
    16 bytes are permuted as TMA's swizzle of that many bytes does.  Eight rows lie one
    after another; the next eight are ``stride`` bytes after the first of these (PTX: stride
    dimension byte offset).  ``first`` is at a multiple of ``8 * swizzle`` bytes.

    With ``mn_major`` the tile has a row for each k, of ``swizzle`` bytes along m or n, all of them
    one after another: an atom column. The next atom column, with what is further along m or n, is
    ``stride`` bytes after it (PTX: leading dimension byte offset).

    Of a program whose tiles are not swizzled yet ``swizzle`` is 0: rows lie as they are, which no
    instruction reads.
    """

    SYNTAX = "{name} = {first}"

    name: str
    first: Element
    swizzle: int
    stride: Expr
    mn_major: bool = False
