"""Tensor maps: tensors as the copy engine (TMA) sees them."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType

ALIGNMENT = 16
"""Bytes: addresses and strides of a map are their multiples, and so is the innermost side of a
box."""
LONGEST_SIDE = 256
"""Elements of a box along each dimension, at most."""
LANDS_AT = 128
"""Bytes; the address in shared memory that a box is copied to is their multiple."""
RANKS = range(2, 6)
"""How many dimensions a tensor with a map has."""
STRIDE_BOUND = 2**40
"""Bytes; each stride of a map is less."""

DATA_TYPES: dict[DType, tuple[int, str]] = {
    "f16": (6, "FLOAT16"),
    "f32": (7, "FLOAT32"),
    "f64": (8, "FLOAT64"),
    "bf16": (9, "BFLOAT16"),
}
"""The numbers and names of ``CU_TENSOR_MAP_DATA_TYPE_*``."""
L2_PROMOTION = 3
"""``CU_TENSOR_MAP_L2_PROMOTION_L2_256B``: what is read through L2 at a time."""


def map_name(tensor: str) -> str:
    """What a tensor's map is called beside its address."""
    return f"{tensor}_map"


@record
class TensorMap:
    """A tensor that the kernel gets as a map, in place of its address: a parameter of that name.

    ``box``: the elements that one copy moves, along each of the tensor's letters, innermost first.
    ``beside``: threads access the tensor, too, so the kernel takes its address and strides as well.
    """

    SYNTAX = "{tensor} {box}"

    tensor: str
    box: tuple[int, ...]
    beside: bool = False

    @property
    def parameter(self) -> str:
        """The kernel's parameter that is the map."""
        return map_name(self.tensor) if self.beside else self.tensor


@record
class MapDimension:
    """One dimension of a map: the parameter that is its size, its side of a box, and the parameter
    that is its stride in elements (None for the innermost: 1)."""

    size: str
    box: int
    stride: str | None = None


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
        """Whether the tensor has no element.  No map says that: its sizes are at least 1."""
        return 0 in self.sizes

    @property
    def encoded_sizes(self) -> tuple[int, ...]:
        """The sizes, 1 in place of 0."""
        return tuple(max(size, 1) for size in self.sizes)
