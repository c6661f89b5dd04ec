"""How the tile of a block is split into instruction tiles, which the lanes of warps share; and the
sizes that do not split."""

from __future__ import annotations

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Blame, remainder
from gemmgen.ir.atoms import ATOMS, Atom, AtomTraits, Via
from gemmgen.ir.buffers import AxisSpread, axes_of_operand
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.fragment_layout import FragmentLayout, Side
from gemmgen.ir.nodes import Kernel
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


def check_sizes(kernel: Kernel, tiles: InstructionTiles, via: Via) -> None:
    """Refuse a tile, or a warp's, that instructions do not divide."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    for axis in kernel.spread.axes:
        if kernel.spread.by_warp:
            _check_side("warp_tile", axis.letter, axis.lanes, tiles, via)
            _check_columns(axis, tiles, via)
        else:
            _check_side("tile", axis.letter, axis.extent, tiles, via)
    _check_side("tile", tiles.problem.k, pipeline.step, tiles, via)


def _check_side(what: str, letter: str, size: int, tiles: InstructionTiles, via: Via) -> None:
    side, traits, most = tiles.side(letter), tiles.traits, tiles.most(letter)
    if what == "warp_tile" and most and size > most:
        raise Refusal(
            f"tensor_core via={via} multiplies at most {most} columns at once",
            at=Blame(what, letter),
            notes=(f"warp_tile {letter}={size} is a warpgroup's",),
            hint=f"warp_tile {letter}={most}",
        )
    if size % side == 0:
        return
    atom = f"{traits.m} x {traits.n} x {traits.k}"
    raise Refusal(
        f"tensor_core can't divide {letter}={size} into instruction tiles of {side}",
        at=Blame(what, letter),
        notes=(f"via={via} multiplies {atom} (m x n x k), and {remainder(size, side)}",),
        hint=f"{what} {letter}={max(side, size // side * side)}",
    )


def _check_columns(axis: AxisSpread, tiles: InstructionTiles, via: Via) -> None:
    """Check that an instruction with this many columns exists."""
    letter, size, traits = axis.letter, axis.lanes, tiles.traits
    less = traits.columns(size)
    if tiles.most(letter) is None or less == size:
        return
    raise Refusal(
        f"tensor_core via={via} multiplies {less} or {less + 2 * traits.n} columns of "
        f"{' and '.join(traits.types)}, not {size}",
        at=Blame("warp_tile", letter),
        notes=(
            f"instructions have a multiple of {2 * traits.n} columns, or up to "
            f"{traits.odd_n * traits.n} a multiple of {traits.n}",
        ),
        hint=f"warp_tile {letter}={tiles.widest(axis, size)}",
    )
