"""Tensor maps: tensors as TMA sees them."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.blocked_letters import blocked
from gemmgen.ir.dtypes import DType

ALIGNMENT = 16
"""Bytes: addresses and strides of a map are their multiples, and so are the innermost side of a box
and where it begins in a row.  A store leaves out what is after a row in whole units of them."""
LONGEST_SIDE = 256
"""Elements of a box along each dimension, at most."""
LANDS_AT = 128
"""Bytes; the address in shared memory that a box is copied to is their multiple."""
RANKS = range(2, 6)
"""How many dimensions a tensor with a map has."""
STRIDE_BOUND = 2**40
"""Bytes; each stride of a map is less."""

SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""The numbers of ``CU_TENSOR_MAP_SWIZZLE_*`` by the bytes of a box's row; 0: not swizzled."""
REPEATS = 8
"""Rows of a swizzled tile after which its pattern begins again.  It is one of addresses in shared
memory, so a tile begins at a multiple of this many rows, else another row would be the first one;
a box may begin at any of the tile's rows that is a multiple of ``LANDS_AT`` bytes."""
L2_PROMOTION = 2
"""``CU_TENSOR_MAP_L2_PROMOTION_L2_128B``: what is read through L2 at a time.  With 256 bytes a
kernel took up to 1.14 times as long where rows do not begin at multiples of 128 bytes, and as long
where they do (bf16, measured on an NVIDIA H200)."""


def map_name(tensor: str) -> str:
    """What a tensor's map is called beside its address."""
    return f"{tensor}_map"


@record
class TensorMap:
    """A tensor that the kernel gets as a map, in place of its address: a parameter of that name.

    ``box``: the elements that one copy moves, along each of the tensor's letters, innermost first.
    ``beside``: threads access the tensor, too, so the kernel takes its address and strides as well.
    ``swizzle``: the bytes of a box's row (32, 64 or 128), if its chunks of 16 bytes change places
    in shared memory; else 0.
    """

    SYNTAX = "{tensor} {box}"

    tensor: str
    box: tuple[int, ...]
    beside: bool = False
    swizzle: int = 0

    @property
    def parameter(self) -> str:
        """The kernel's parameter that is the map."""
        return map_name(self.tensor) if self.beside else self.tensor


@record
class MapDimension:
    """One dimension of a map: the parameter that is its size, its side of a box, and the parameter
    that is its stride in elements (None for the innermost: 1).  With ``block`` its size is the
    number of blocks of that many."""

    size: str
    box: int
    stride: str | None = None
    block: int = 1

    @property
    def size_text(self) -> str:
        """The size, for people: ``K/128``."""
        return blocked(self.size, self.block)

    @property
    def size_in_c(self) -> str:
        """The size as an expression of C that no extent makes overflow."""
        if self.block == 1:
            return self.size
        return f"{self.size} / {self.block} + ({self.size} % {self.block} > 0)"


@record
class MapFields:
    """What a map is encoded from besides an address; dimensions innermost first.

    ``sizes`` and ``box`` count elements; ``strides`` count bytes, from the second dimension on;
    ``swizzle`` is the map's.
    """

    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    @property
    def modes(self) -> tuple[int, int, int, int]:
        """Interleaving, swizzle, L2 promotion and fill (zeros outside), as the driver numbers
        them."""
        return 0, SWIZZLES[self.swizzle], L2_PROMOTION, 0

    @property
    def is_empty(self) -> bool:
        """Whether the tensor has no element.  No map says that: its sizes are at least 1."""
        return 0 in self.sizes

    @property
    def encoded_sizes(self) -> tuple[int, ...]:
        """The sizes, 1 in place of 0."""
        return tuple(max(size, 1) for size in self.sizes)
