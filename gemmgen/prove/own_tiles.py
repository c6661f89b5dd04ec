"""Which tiles each role has where a block has several: every ``gridDim.x``-th from its own on.

Other bounds than these are not covered.  Small grids show some of them to be wrong: there each
block's tiles are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from gemmgen.base.record import record
from gemmgen.prove import conditions, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext

MOST_BLOCKS, MOST_TILES = 3, 7
"""The largest grid that is listed."""


@record
class TileBounds:
    """A role's loop over the tiles of its block."""

    start: Polynomial
    stop: Polynomial
    step: Polynomial


def check(context: WalkContext, state: WalkState, roles: Sequence[Sequence[TileBounds]]) -> None:
    """Claims that the last role has all tiles of its block, and the others the same ones.  Groups
    of threads of one role have its tiles alternately.
    Raises ``Unsupported``, if that is not a question of how many tiles there are."""
    grid, own = context.grid, roles[-1]
    first, every = grid.of_rank(grid.block, context.rank), polynomials.scale(grid.tiles, grid.ranks)
    for groups in roles:
        step = polynomials.scale(grid.blocks, len(groups))
        for number, each in enumerate(groups):
            start = polynomials.add(first, polynomials.scale(grid.blocks, number))
            if not (polynomials.same(each.start, start) and polynomials.same(each.step, step)):
                if len(roles) <= 2:
                    _refute(context, state, roles)
                raise Unsupported(
                    f"a role's loop over tiles from {polynomials.text(each.start)} by "
                    f"{polynomials.text(each.step)}"
                )
    for each in own:
        context.claim(state, "coverage", _equal(each.stop, every), "a tile has no block")
    some = _some_products(context)
    for other in (each for groups in roles[:-1] for each in groups):
        about = "a role waits for tiles that another role does not have"
        context.claim(state, "barriers", _equal(other.stop, own[0].stop), about, path=some)


def _equal(left: Polynomial, right: Polynomial) -> Condition:
    return conditions.is_zero(polynomials.subtract(left, right))


def _some_products(context: WalkContext) -> tuple[Condition, ...]:
    """That there are products: else no role waits."""
    extents = map(context.extent, context.contracted)
    return tuple(conditions.less(polynomials.ZERO, each) for each in extents)


def _refute(context: WalkContext, state: WalkState, roles: Sequence[Sequence[TileBounds]]) -> None:
    """Looks for a small grid in which these loops are wrong."""
    grid = context.grid
    for blocks in range(1, MOST_BLOCKS + 1):
        for tiles in range(blocks, MOST_TILES + 1):
            listed = [_alternate(context, groups, blocks, tiles) for groups in roles]
            if not all(listed):
                continue
            here = state.branch()
            here.path = (
                *state.path,
                *_some_products(context),
                _equal(grid.step, polynomials.fixed(blocks)),
                _equal(grid.tiles, polynomials.fixed(tiles)),
            )
            own = listed[-1]
            every = sorted(tile for of_block in own for tile in of_block)
            if every != [*range(tiles * grid.ranks)]:
                about = "a tile has no block, or several"
                context.violated(here, "coverage", about)
                return
            for other in listed[:-1]:
                if other != own:
                    apart = [*map(len, other)] != [*map(len, own)]
                    about = "a role has other tiles of its block than another role"
                    context.violated(here, "barriers" if apart else "products", about)
                    return


def _alternate(
    context: WalkContext, groups: Sequence[TileBounds], blocks: int, tiles: int
) -> list[list[int]]:
    """The tiles of each block that the groups of a role have, each of them in its turn."""
    of_groups = [_listed(context, each, blocks, tiles) for each in groups]
    found: list[list[int]] = []
    for own in zip(*of_groups, strict=False):
        rounds = zip_longest(*own)
        found.append([tile for each in rounds for tile in each if tile is not None])
    return found


def _listed(context: WalkContext, role: TileBounds, blocks: int, tiles: int) -> list[list[int]]:
    """The tiles of each block, of as many clusters as there are ``blocks`` if there are clusters;
    none if they are not numbers, or without end."""
    grid, apart = context.grid, role.stop.constant
    (block,), (count,) = grid.block.symbols, grid.step.symbols
    own = polynomials.scale(grid.tiles, grid.ranks)
    all_tiles = _equal(role.stop, polynomials.add(own, polynomials.fixed(apart)))
    used = role.start.symbols | role.step.symbols
    uniform = role.step.uniform and role.stop.uniform
    is_number = uniform and isinstance(apart, int) and used <= {block, count}
    if not is_number or not context.theory.decided(
        ("tiles", polynomials.signature(role.stop)), (), all_tiles
    ):
        return []
    found: list[list[int]] = []
    for number in range(blocks):
        values = {block: number, count: blocks}
        step = int(polynomials.evaluated(role.step, values))
        if step <= 0:
            return []
        for rank in range(grid.ranks):
            first = polynomials.of_thread(role.start, rank * context.block_threads)
            start = int(polynomials.evaluated(first, values))
            found.append([*range(start, tiles * grid.ranks + int(apart), step)])
    return found
