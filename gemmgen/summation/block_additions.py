"""The additions of a block as its declared program has them."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.decompositions import products_of
from gemmgen.ir.edit import contraction, pipeline_of, promotion_of
from gemmgen.ir.nodes import Program, Reduce, Residue
from gemmgen.summation.k_walk import Addition, Combination, PartialAccumulator, Products

WHOLE = ((0, 0),)
"""The one pair of terms of an operand that is not split."""


@record
class BlockAdditions:
    """What decides the additions of a block.

    ``depth``: products that one accumulation adds; ``step``: elements along k of a tile (0: there
    are no tiles).  ``terms``: pairs of terms of split operands, largest last, of A and B as the
    ``gemm`` line has them; ``apart``: each pair is multiplied over a whole tile before the next.
    ``interval``: products after which a partial accumulator is promoted (0: none).  ``lanes``:
    lanes that share a sum, and the adjacent elements that each of them takes (1, 0: one lane).
    ``slices`` of K are reduced in ``groups``.
    """

    atom: Atom
    depth: int
    step: int
    residue: Residue
    terms: tuple[tuple[int, int], ...]
    apart: bool
    interval: int
    lanes: tuple[int, int]
    slices: int
    groups: int
    reduce: Reduce
    swapped: bool

    @staticmethod
    def of(program: Program) -> BlockAdditions:
        kernel = program.main
        pipeline, promotion, contract = (
            pipeline_of(kernel),
            promotion_of(kernel),
            contraction(kernel),
        )
        traits, along_k = ATOMS[contract.atom], kernel.spread.k_layout
        step = pipeline.step if pipeline else 0
        split = traits.splits is not None and contract.into is not None
        pairs = products_of(contract.parts, contract.products) if split else WHOLE
        return BlockAdditions(
            contract.atom,
            step if along_k else traits.k,
            step,
            pipeline.residue if pipeline else "last",
            pairs,
            split and traits.in_place,
            promotion.every if promotion else 0,
            (along_k.lanes, along_k.width) if along_k else (1, 0),
            kernel.work.parts,
            kernel.work.groups,
            kernel.work.reduce,
            program.problem.swapped,
        )

    def range_of(self, part: int, depth: int) -> tuple[int, int]:
        """The first element along k, and the one after the last, of a slice for K = ``depth``."""
        if self.slices == 1:
            ragged = depth % self.step if self.step and self.residue == "first" else 0
            return (ragged - self.step if ragged else 0), depth
        steps = -(-depth // self.step)
        chunk = -(-steps // self.slices) * self.step
        return part * chunk, min((part + 1) * chunk, depth)

    def additions(self, part: int, depth: int) -> tuple[Addition, ...]:
        """What a block adds for its slice of K = ``depth``."""
        found = list(self._promoted(part, depth))
        if self.lanes[0] > 1:
            found.append(Combination("lanes"))
        if self.slices > 1:
            scopes = ("parts",) if self.groups == 1 else ("group", "groups")
            how = " atomic" if self.reduce == "atomic" else ""
            found += [
                Combination(f"{does} {x}{how}") for x in scopes for does in ("store", "reduce")
            ]
        if ATOMS[self.atom].splits is not None:
            found.append(Combination("again"))
        return tuple(found)

    def _promoted(self, part: int, depth: int) -> Iterator[Addition]:
        start, stop = self.range_of(part, depth)
        if not self.interval:
            yield from self._products(start, stop)
            return
        interval: list[Products] = []
        for one in self._products(start, stop):
            before = (interval[-1].first if interval else start) - start
            if interval and one.first - start >= _next(before, self.interval):
                yield PartialAccumulator(tuple(interval))
                interval = []
            interval.append(one)
        if interval:
            yield PartialAccumulator(tuple(interval))

    def _products(self, start: int, stop: int) -> Iterator[Products]:
        """One accumulation after another, in the order of k."""
        tile = self.step or max(1, stop - start)
        for origin in range(start, stop, tile):
            end = origin + self.step if self.step else stop
            for pair in self.terms if self.apart else WHOLE:
                for first in range(origin, end, self.depth):
                    yield Products(first, first + self.depth, pair)


def _next(at: int, interval: int) -> int:
    """The end of the interval with the product ``at``."""
    return (at // interval + 1) * interval
