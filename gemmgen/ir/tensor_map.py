"""Tensor maps: tensors as the copy engine (TMA) sees them."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType

ALIGNMENT = 16
"""Bytes: addresses and strides of a map are their multiples, and so is the innermost side of a
box."""
LONGEST_SIDE = 256
"""Elements of a box along each dimension, at most."""
RANKS = range(2, 6)
"""How many dimensions a tensor with a map has."""
STRIDE_BOUND = 2**40
"""Bytes; each stride of a map is less."""


@record
class TensorMap:
    """A tensor that the kernel gets as a map, in place of its address: a parameter of that name.

    ``box``: the elements that one copy moves, along each of the tensor's letters, innermost first.
    """

    SYNTAX = "{tensor} {box}"

    tensor: str
    box: tuple[int, ...]


@record
class MapDimension:
    """One dimension of a map: the parameter that is its size, the one that is its stride in
    elements (None for the innermost: 1), and its side of a box."""

    size: str
    stride: str | None
    box: int


@record
class MapFields:
    """What a map is encoded from besides an address; dimensions innermost first.

    ``sizes`` and ``box`` count elements; ``strides`` count bytes, from the second dimension on.
    """

    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the tensor has no element: a map can't say that."""
        return 0 in self.sizes
