"""The summation order of a schedule, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DType


@record
class Slices:
    """``count`` slices of K.  Slice s begins at s * ceil(ceil(K / step) / count) * step; they are
    reduced in order, in ``groups`` of adjacent ones, or else as blocks arrive."""

    count: int = 1
    step: int = 0
    groups: int = 1
    ordered: bool = True


@record
class SummationOrder:
    """How one element of C is summed, as a function of K alone.

    Kernels with equal values give equal bits of C for the same inputs, on one GPU, for each shape
    that both take (the sign of a zero aside: decision 94 says when).  What doesn't change bits is
    not part of it: tiles along m and n, stages, vectors, roles, the order of threads' multiply-adds
    of one k, the extent of an instruction along m and n, and which of its operands is A.
    """

    instruction: str
    """What multiplies and adds, as PTX names it; ``integers`` if all orders give the same bits."""
    depth: int
    """Products of adjacent k that one accumulation adds."""
    multiplied: tuple[DType, DType]
    """The types of what is multiplied: elements of A and B, or terms of them."""
    accumulator: DType
    aligned: str = "first"
    """Where accumulations begin: at multiples of ``depth`` from the ``first`` k of a slice, so that
    the last one is short; or counted from the ``last`` k, so that the first one is."""
    terms: tuple[tuple[int, int], ...] = ()
    """Pairs of terms of A and B that are multiplied, in order; empty if operands are whole."""
    pair_extent: int = 0
    """Elements along k that are multiplied for one pair before the next."""
    interval: int = 0
    """Products after which a partial accumulator is promoted to the accumulator; 0: none."""
    interval_step: int = 0
    """If intervals are counted from a ragged first tile: its extent along k."""
    scales: tuple[str, ...] = ()
    """The factors of blocks of A and B, as ``SA[k/128, m]``: they multiply the sum of an interval
    if there are intervals, else each element."""
    lanes: tuple[int, int] = (1, 0)
    """Lanes that share a sum, each with its own k, and the adjacent elements that one takes."""
    slices: Slices = Slices()
    recomputed: bool = False
    """Whether a result that is not finite is summed again, by one fmaf per k."""
    epilogue: str = ""
    computed_in: DType = "f32"
    """What the epilogue is computed in."""
    tensors: tuple[tuple[str, DType], ...] = ()
    """The tensors that the epilogue reads, and their types."""
    stored: DType = "f32"
    """C's type, to which a result is rounded once."""
    walk: str = "ascending"
    """The order of k in a slice, as the expanded program has it; if that is not ``ascending``, a
    digest of it."""
    depends: tuple[str, ...] = ()
    """Letters whose extents the order depends on besides K."""
    unread: tuple[str, ...] = ()
    """What the program says that is not known to leave the order as it is."""

    @property
    def reproducible(self) -> bool:
        """Whether two runs give the same bits."""
        return self.slices.ordered

    def varies_with(self, letter: str) -> tuple[str, ...]:
        """Why the bits of an element may depend on the extent of ``letter``; empty if not."""
        return tuple(self._reasons(letter))

    def _reasons(self, letter: str) -> Iterator[str]:
        if not self.slices.ordered:
            yield (
                f"{self.slices.count} slices of K are added in the order in which blocks arrive, "
                "which differs from launch to launch"
            )
        if letter in self.depends:
            yield f"which products an accumulator adds depends on the extent of {letter}"
        elif self.walk != "ascending":
            yield "the order of k is not one that is known for all shapes"
        for each in self.unread:
            yield f"{each} is not known to leave the order as it is"

    def differences(self, other: SummationOrder) -> tuple[str, ...]:
        """The names of the fields that differ."""
        names = (field.name for field in fields(self))
        return tuple(x for x in names if getattr(self, x) != getattr(other, x))
