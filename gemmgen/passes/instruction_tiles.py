"""How the tile of a block is split into instruction tiles, which the lanes of warps share."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Atom, AtomTraits
from gemmgen.ir.buffers import AxisSpread, axes_of_operand
from gemmgen.ir.fragment_layout import FragmentLayout, Side
from gemmgen.ir.problem import Problem


@record
class InstructionTiles:
    """How a tile is split into the instruction tiles of ``atom``."""

    problem: Problem
    atom: Atom

    @property
    def traits(self) -> AtomTraits:
        return ATOMS[self.atom]

    def side(self, letter: str) -> int:
        """The extent of an instruction tile."""
        problem, traits = self.problem, self.traits
        return {problem.m: traits.m, problem.n: traits.n, problem.k: traits.k}[letter]

    def most(self, letter: str) -> int | None:
        """The greatest extent of a warp's tile for one instruction; None without a limit."""
        limited = self.traits.in_place and letter == self.problem.n
        return self.traits.most_n if limited else None

    def widest(self, axis: AxisSpread, size: int) -> int:
        """The greatest multiple of the instruction tile, up to ``size``, that one instruction
        supports and that divides the axis."""
        limited, side = self.most(axis.letter), self.side(axis.letter)
        whole = (s for s in range(size, 0, -side) if axis.extent % s == 0)
        return next(s for s in whole if not limited or self.traits.columns(s) == s)

    def distribute(self, axis: AxisSpread, size: int) -> AxisSpread:
        """The accumulators along an axis: ``size`` for each warp, whose lanes share each
        instruction tile."""
        side: Side = "row" if axis.letter == self.problem.m else "column"
        lanes, width = self.traits.share(side)
        warps = self.traits.warps(side)
        pieces = size // (warps * lanes * width)
        return AxisSpread(axis.letter, axis.extent // size * warps, pieces, lanes, width)

    def operand(
        self, accumulators: AxisSpread, layout: FragmentLayout | None
    ) -> tuple[AxisSpread, AxisSpread]:
        """A fragment: an operand along the axis of the accumulators, and along k."""
        k, steps = self.problem.k, self.traits.k
        if layout is None:
            return accumulators, AxisSpread(k, 1, 1, 1, steps)
        return axes_of_operand(
            accumulators, layout, "row" if accumulators.letter == self.problem.m else "column", k
        )
