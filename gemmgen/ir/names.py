"""The names that emitted text uses: one letter in front says what a constant sizes.

``BM`` is the block's tile along m, ``WM`` a warp's, ``TM`` a thread's (the micro-tile), ``PM`` the
neighbours in one piece of it, ``LM`` the threads (lanes) along m.  On tensor cores ``IM`` is what
one instruction multiplies, and ``FM`` counts a warp's fragments.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.ir.expr import Var

Name = Callable[[str], Var]
"""A name that a letter of the schedule has a part in."""


def _size(first: str) -> Name:
    return lambda letter: Var(first + letter.upper())


def _index(first: str) -> Name:
    return lambda letter: Var(f"{first}_{letter}")


block = _size("B")
"""Extent of the block's tile: ``BM``."""
warp = _size("W")
"""Extent of a warp's tile: ``WM``."""
registers = _size("T")
"""Extent of a thread's micro-tile: ``TM``."""
piece = _size("P")
"""Neighbours in one piece of the micro-tile: ``PM``."""
lanes = _size("L")
"""Threads along the letter, of the warp or else of the block: ``LM``."""
instruction = _size("I")
"""Extent of what one tensor-core instruction multiplies: ``IM``."""
fragments = _size("F")
"""A warp's fragments along the letter: ``FM``."""

cluster = _size("CLUSTER_")
"""Blocks of a cluster along the letter: ``CLUSTER_M``."""

tile_origin = _index("tile")
"""First index of the current tile: ``tile_m``, ``tile_k``."""
round_origin = _index("round")
"""First index of the current round, the tiles of one iteration of an unrolled loop: ``round_k``."""
start = _index("start")
"""First index of a part's range: ``start_k``."""
stop = _index("stop")
"""The index after a part's range: ``stop_k``."""
box = _index("box")
"""First index of a box within a tile that TMA copies in several: ``box_m``."""
rank = _index("rank")
"""The block's place in its cluster along the letter: ``rank_m``."""
thread_origin = _index("thread")
"""A thread's first element within the block's tile: ``thread_m``."""
warp_origin = _index("warp")
"""A warp's first element within the block's tile: ``warp_m``."""

CONSUMERS = Var("CONSUMERS")
"""The threads of a block that multiply, where others only copy."""

CONSUMER, CONSUMER_NUMBER = Var("CONSUMER"), Var("consumer")
"""The threads of one ping-pong consumer, and which of the consumers a thread belongs to."""

CONSUMER_GROUPS = Var("CONSUMER_GROUPS")
"""The ping-pong consumers."""

CONSUMER_BARRIER = Var("CONSUMER_BARRIER")
"""The named barrier of the consumers, or of the first of ping-pong consumers; 0 is the block's."""

PRODUCER_REGISTERS, CONSUMER_REGISTERS = Var("PRODUCER_REGISTERS"), Var("CONSUMER_REGISTERS")
"""Registers of a thread of each role, by ``setmaxnreg``."""

WARPGROUP = Var("WARPGROUP")
"""Threads of a warpgroup."""

PROMOTE = Var("PROMOTE")
"""Terms whose accumulators are promoted into others together."""

SPLIT = Var("SPLIT")
"""Parts of an element that is split, each in its own tile."""

CLUSTER = Var("CLUSTER")
"""The blocks of a cluster."""

STAGE_BYTES = Var("STAGE_BYTES")
"""Bytes that TMA writes into one stage."""

OWN_PART = Var("own_part")
"""The number of the block's slice of K among those of its tile."""
WORKSPACE, ARRIVED = Var("workspace"), Var("arrived")
"""Where blocks that share a tile write their partial accumulators, and the counters of their
arrivals."""


def pad(tensor: str) -> Var:
    """Elements at the end of each row of a tensor's tile in shared memory: ``A_PAD``."""
    return Var(f"{tensor}_PAD")


def atom_width(tensor: str) -> Var:
    """Elements of a row of a tensor's shared tile that is cut into atom columns: ``A_ATOM``."""
    return Var(f"{tensor}_ATOM")


def slice_rows(tensor: str) -> Var:
    """Rows of the output in shared memory at a time: ``C_ROWS``."""
    return Var(f"{tensor}_ROWS")


def share_origin(tensor: str, letter: str) -> Var:
    """The first row that the block copies of a tile that its cluster shares: ``A_k``."""
    return Var(f"{tensor}_{letter}")


def sharers(tensor: str) -> Var:
    """The blocks that share a tile of a tensor with the first of them, as bits: ``A_BLOCKS``."""
    return Var(f"{tensor}_BLOCKS")


def load(tensor: str) -> str:
    """The function that loads vectors of a tensor: ``load_A``."""
    return f"load{'' if tensor.startswith('_') else '_'}{tensor}"


def copy_tile(tensor: str) -> str:
    """The function that begins to copy a tile of a tensor: ``copy_A_tile``."""
    return f"copy{'' if tensor.startswith('_') else '_'}{tensor}_tile"
