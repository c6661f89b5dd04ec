"""The grid of a launch: how many tiles and blocks there are, and the numbers of one of each."""

from __future__ import annotations

import random
from collections.abc import Mapping

from gemmgen.base.record import record
from gemmgen.ir.interface import Interface
from gemmgen.numerics.operators import Ints
from gemmgen.prove import conditions, polynomials
from gemmgen.prove.integers import ONE, Unsupported, bound, divided, named, number_in
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.theory import Theory

BLOCK, CLUSTER = "blockIdx.x", "cluster of blockIdx.x"
"""The symbols of the number of the block, or of the cluster, that is walked."""


@record
class LaunchGrid:
    """``counts`` of tiles along each extent, then of matrices; ``tiles`` is their product.

    ``block`` is a block's number, of ``blocks``.  ``tile`` is the number that a tile's indices are
    computed from: the block's own, unless a block has several tiles; the next one is ``step``
    further.

    Where blocks are of clusters, of ``ranks`` blocks each, all of that is so of clusters, and the
    tiles that the blocks of one have, but for ``blocks``.  ``sides`` are those of such a tile, by
    extent.
    """

    counts: tuple[Polynomial, ...]
    tiles: Polynomial
    block: Polynomial
    blocks: Polynomial
    tile: Polynomial
    sides: tuple[int, ...]
    step: Polynomial
    ranks: int = 1

    def of_rank(self, number: Polynomial, rank: Ints) -> Polynomial:
        """The number of the block, or of its tile, with each ``rank`` of the cluster, or of the
        tiles of a cluster, that has this ``number``."""
        if self.ranks == 1:
            return number
        return polynomials.add(polynomials.scale(number, self.ranks), polynomials.fixed(rank))

    def of_part(self, part: int) -> Polynomial:
        """The block of a tile's part: those of the first parts of all tiles come first."""
        return polynomials.add(polynomials.scale(self.tiles, part), self.tile)


def grid_of(interface: Interface, theory: Theory, sizes: Mapping[str, Polynomial]) -> LaunchGrid:
    """The grid of a launch, with what is known of it in ``theory``."""
    if interface.parts > 1 and interface.resident:
        raise Unsupported("split_k of persistent blocks")
    along = interface.cluster or (1,) * len(interface.tiles)
    sides = tuple(size * n for (_, size), n in zip(interface.tiles, along, strict=True))
    named_sides = zip(interface.tiles, sides, strict=True)
    counts = [_count(theory, sizes[name], side, name) for (name, _), side in named_sides]
    counts += [sizes[name] for _, name in interface.batches]
    together = interface.parts * interface.cluster_blocks
    most, total = polynomials.fixed(interface.most_tiles // together), ONE
    for i, count in enumerate(counts):
        total = polynomials.multiply(total, count)
        for each in counts[: i + 1]:
            if not each.concrete:
                theory.defined(each, conditions.at_least(most, total))
    theory.limits += [one for one in counts if not one.concrete]
    if interface.parts > 1:
        matrix = ONE
        for count in counts[: len(interface.tiles)]:
            matrix = polynomials.multiply(matrix, count)
        total = named(theory, matrix, "tiles of a matrix")
        for count in counts[len(interface.tiles) :]:
            total = polynomials.multiply(total, count)
        total = named(theory, total, "tiles")
        tile = _number(theory, "tile", total, most)
        ranks = interface.cluster_blocks
        blocks = polynomials.scale(total, interface.parts * ranks)
        return LaunchGrid(tuple(counts), total, tile, blocks, tile, sides, blocks, ranks)
    ranks = interface.cluster_blocks
    name = CLUSTER if interface.cluster else BLOCK
    if not interface.resident:
        block = _number(theory, name, total, most)
        blocks = polynomials.scale(total, ranks)
        return LaunchGrid(tuple(counts), total, block, blocks, block, sides, total, ranks)
    step = theory.symbol("clusters of gridDim.x" if interface.cluster else "gridDim.x")
    theory.known(step, conditions.at_least(step, ONE), conditions.at_least(most, step))
    theory.defined(step, conditions.at_least(total, step))
    _draw(theory, step, total, 1)
    block = _number(theory, name, step, most)
    tile = _number(theory, "tile", total, most)
    blocks = polynomials.scale(step, ranks)
    return LaunchGrid(tuple(counts), total, block, blocks, tile, sides, step, ranks)


def _number(theory: Theory, name: str, count: Polynomial, most: Polynomial) -> Polynomial:
    """A number from 0 to ``count``, exclusive."""
    own = theory.symbol(name)
    theory.known(own, conditions.not_negative(own), conditions.less(own, most))
    theory.defined(own, conditions.less(own, count), conditions.at_least(most, count))
    _draw(theory, own, count, 0)
    return own


def _draw(theory: Theory, own: Polynomial, count: Polynomial, least: int) -> None:
    """A number of each sampled call."""
    dice = random.Random(0)

    def drawn(sample: Mapping[str, int]) -> int | None:
        most = number_in(sample, count)
        return None if not most or most < 1 else dice.randrange(most) + least

    theory.valued(own, drawn)


def _count(theory: Theory, extent: Polynomial, size: int, name: str) -> Polynomial:
    """How many tiles there are along an extent, under a name, so that products of counts stay
    products of symbols."""
    last = polynomials.add(extent, polynomials.fixed(-1))
    quotient, _ = divided(theory, last, polynomials.fixed(size))
    form = polynomials.add(quotient, ONE)
    if form.concrete:
        return form
    own = theory.symbol(f"tiles along {name}")
    theory.known(own, conditions.is_zero(polynomials.subtract(own, form)))
    theory.valued(own, lambda sample: number_in(sample, form))
    bound(theory, own)
    theory.shared_names["=", polynomials.signature(form)] = own
    return own
