"""Blocks of a cluster: they run together, and share tiles of the operands.

Two blocks whose tiles of C differ along one letter alone read the same tile of the operand that has
not that letter.  Each of those blocks asks TMA for a share of its rows, which lands in
the shared memory of all of them (multicast).  A block's rank in its cluster counts along the last
letter of C fastest.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gemmgen.ir.blocked_letters import block
from gemmgen.ir.buffers import Buffer, Origins
from gemmgen.ir.nodes import Work

MOST_BLOCKS = 8
"""Blocks of a cluster, on every GPU that has them."""


def blocks_of(work: Work) -> int:
    """Blocks of a cluster; 1 without clusters."""
    return prod(count for _, count in work.cluster)


def along(work: Work, letter: str) -> int:
    """Blocks of a cluster along a letter of C."""
    return dict(work.cluster).get(letter, 1)


def shared_along(work: Work, tile: Buffer) -> str | None:
    """The letter along which blocks of a cluster share a tile; None if each has its own, as of the
    factors of a tile's rows, which are one row that can't be shared out."""
    if any(block(letter) > 1 for letter in tile.letters):
        return None
    found = [letter for letter, count in work.cluster if count > 1 and letter not in tile.letters]
    return found[0] if found else None


def sharers(work: Work, tile: Buffer) -> tuple[int, ...]:
    """The ranks of the blocks that share a tile with the first block of their cluster."""
    letter = shared_along(work, tile)
    if letter is None:
        return (0,)
    _, (column, columns) = work.cluster
    apart = 1 if letter == column else columns
    return tuple(apart * i for i in range(along(work, letter)))


def share_of(work: Work, tile: Buffer) -> Buffer:
    """The rows of a tile that one block copies, as a tile."""
    letter = shared_along(work, tile)
    if letter is None:
        return tile
    outer = tile.letters[0]
    rows = tile.extent(outer) // along(work, letter)
    return replace(tile, shape=((outer, rows), *tile.shape[1:]))


def origins_of(work: Work) -> Origins:
    """The directive that says which blocks are of a cluster."""
    return tuple(origin for origin in work.origins if origin.startswith("cluster"))
