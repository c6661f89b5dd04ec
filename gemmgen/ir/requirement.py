"""What a kernel requires of the arguments of a call: one class for each kind of rule.

``holds`` takes the values of a call by the names of parameters: extents, leading dimensions and
strides in elements, a tensor's address under the tensor's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.record import record


@record
class AtLeast:
    """``lda >= K``: a leading dimension spans its row."""

    name: str
    bound: str

    def text(self) -> str:
        return f"{self.name} >= {self.bound}"

    def holds(self, values: Mapping[str, int]) -> bool:
        return values[self.name] >= values[self.bound]


@record
class AtLeastBlocks:
    """``ldsb * 128 >= K``: a leading dimension spans its row of an element for each ``block``."""

    name: str
    bound: str
    block: int

    def text(self) -> str:
        return f"{self.name} * {self.block} >= {self.bound}"

    def holds(self, values: Mapping[str, int]) -> bool:
        return values[self.name] * self.block >= values[self.bound]


@record
class AtMost:
    """``M <= 2147483519``: 32-bit index arithmetic cannot wrap."""

    name: str
    bound: int

    def text(self) -> str:
        return f"{self.name} <= {self.bound}"

    def holds(self, values: Mapping[str, int]) -> bool:
        return values[self.name] <= self.bound


@record
class MultipleOf:
    """``lda % 4 == 0``: a stated divisibility of an extent or a leading dimension."""

    name: str
    divisor: int

    def text(self) -> str:
        return f"{self.name} % {self.divisor} == 0"

    def holds(self, values: Mapping[str, int]) -> bool:
        return values[self.name] % self.divisor == 0


@record
class Equal:
    """``lda == K``: an assumed equality of an extent and another (``assume N == K``)."""

    name: str
    other: str

    def text(self) -> str:
        return f"{self.name} == {self.other}"

    def holds(self, values: Mapping[str, int]) -> bool:
        return values[self.name] == values[self.other]


@record
class Aligned:
    """``A is 16-byte aligned``: the pointer's address is a multiple of ``bytes``."""

    name: str
    bytes: int

    def text(self) -> str:
        return f"{self.name} is {self.bytes}-byte aligned"

    def holds(self, values: Mapping[str, int]) -> bool:
        """``values`` gives a tensor's address under its name."""
        return values[self.name] % self.bytes == 0


@record
class Within:
    """``0 <= stride_A_b <= 274877906940``: what a tensor map can hold."""

    name: str
    least: int
    most: int

    def text(self) -> str:
        return f"{self.least} <= {self.name} <= {self.most}"

    def holds(self, values: Mapping[str, int]) -> bool:
        return self.least <= values[self.name] <= self.most


Requirement = AtLeast | AtLeastBlocks | AtMost | MultipleOf | Equal | Aligned | Within
