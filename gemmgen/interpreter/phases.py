"""What the phase of a barrier (mbarrier) lacks, and the boxes under way that it counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmgen.base.record import record
from gemmgen.interpreter.checked_memory import Elements, FlatMemory, poison_of
from gemmgen.ir.dtypes import BYTES
from gemmgen.numerics.operators import Ints


@record
class BoxLanding:
    """Of one block a box under way: ``values`` to ``places`` of ``target``'s data."""

    target: FlatMemory
    places: Ints
    values: Elements
    thread: int

    def land(self) -> None:
        self.target.data[self.places] = self.values

    def spoil(self) -> None:
        poison = poison_of(self.target.data.dtype.type)
        self.target.data[self.places] = poison

    @property
    def bytes(self) -> int:
        return len(self.values) * BYTES[self.target.dtype]


@dataclass(eq=False)
class BarrierState:
    """One barrier of one block: what its present phase lacks."""

    arrivals: int
    pending: int
    bytes: int = 0
    phase: int = 0
    fenced: bool = False
    landing: list[BoxLanding] = field(default_factory=list[BoxLanding])

    def ends(self, parity: int) -> bool:
        """Whether the phase with this parity has ended, once as many boxes have landed as that
        needs."""
        while self.phase % 2 == parity and self.landing:
            self.count(self.landing.pop(0))
        return self.has_ended(parity)

    def has_ended(self, parity: int) -> bool:
        """Whether the phase with this parity has ended by now."""
        return self.phase % 2 != parity

    def count(self, box: BoxLanding) -> None:
        """A box lands."""
        box.land()
        self.bytes -= box.bytes
        self.settle()

    def lacks(self) -> str:
        """What the present phase lacks, in words."""
        return (
            f"its phase {self.phase} lacks {self.pending} of {self.arrivals} arrivals and "
            f"{self.bytes} bytes"
        )

    def settle(self) -> None:
        """The next phase begins if this one lacks nothing."""
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending = self.phase + 1, self.arrivals
