"""What expressions and statements ask of a memory, whether it holds elements or only watches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from gemmgen.interpreter.simt import Index, Mask
from gemmgen.ir.control import DefineKind
from gemmgen.ir.dtypes import DTYPES, DType
from gemmgen.numerics.operators import Bools, Value

Kind = DefineKind
_KINDS: dict[str, Kind] = {"raw": "int", "integer": "i32", "rounded": "float"}
KINDS: dict[DType, Kind] = {
    name: _KINDS.get(traits.kind) or ("double" if name == "f64" else "float")
    for name, traits in DTYPES.items()
}
"""What an element of a memory is in C: f16 and bf16 are raw bits."""


class Memory(ABC):
    """A named array; each lane accesses elements by their indices."""

    known: Value | None = None
    """``UNKNOWN`` if it holds no values."""
    recorded: bool = True
    """False: an access of it is of no consequence, and need not be made."""

    def __init__(self, name: str, dtype: DType):
        self.name = name
        self.dtype: DType = dtype
        self.kind: Kind = KINDS[dtype]

    @abstractmethod
    def load(self, index: Index, mask: Mask) -> Value:
        """The element of each lane."""

    @abstractmethod
    def store(self, index: Index, value: Value, mask: Mask) -> None:
        """``value`` to the element of each lane."""

    @abstractmethod
    def read(
        self, index: Index, width: int, mask: Mask, valid: Value | None = None
    ) -> Sequence[Value]:
        """``width`` neighbours from ``index`` on in one access; of ``valid`` the first this many,
        then zeros."""

    @abstractmethod
    def write(self, index: Index, values: Sequence[Value], mask: Mask) -> None:
        """Neighbours from ``index`` on in one access."""

    def add(self, index: Index, value: Value, mask: Mask) -> None:
        """Adds ``value`` to each lane's element, atomically."""
        raise AssertionError(f"{self.name} is not a workspace")

    def count(self, index: Index, last: int, mask: Bools) -> Value:
        """Counts the blocks of the lanes in ``mask``; whether a lane's block comes last."""
        raise AssertionError(f"{self.name} is not a counter")
