"""What a field of a node says of the order in which products are added: that it does not matter.

The summation order is read from other fields (``gemmgen/summation``).  A field that neither is
read nor is declared here becomes part of the order's value.
"""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any, TypeVar

T = TypeVar("T")

_KEPT = "summation order"


def keeps_order(default: T) -> T:
    """A field with this default whose other values add the same products in the same order."""
    return field(default=default, metadata={_KEPT: True})


def is_order_kept(of: Field[Any]) -> bool:
    """Whether a field was declared by ``keeps_order``."""
    return _KEPT in of.metadata
