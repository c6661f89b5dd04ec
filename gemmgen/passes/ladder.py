"""The ladder: the passes in the order in which they run.

A directive is one file in this folder; its docstring is what ``gemmgen help`` prints.  To add a
rung, write the file and put its class in this list.
"""

from __future__ import annotations

from gemmgen.passes.async_copy import AsyncCopy
from gemmgen.passes.base import Pass, Stated
from gemmgen.passes.bind import Bind
from gemmgen.passes.cache_shared import CacheShared
from gemmgen.passes.double_buffer import DoubleBuffer
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.launch_bounds import LaunchBounds
from gemmgen.passes.pad import Pad
from gemmgen.passes.raster import Raster
from gemmgen.passes.register_block import RegisterBlock
from gemmgen.passes.residue import Residue
from gemmgen.passes.split_k import SplitK
from gemmgen.passes.swizzle import Swizzle
from gemmgen.passes.tensor_core import TensorCore
from gemmgen.passes.tile import Tile
from gemmgen.passes.unroll import Unroll
from gemmgen.passes.vectorize import Vectorize
from gemmgen.passes.warp_tile import WarpTile
from gemmgen.schedule.model import Schedule

LADDER = (
    Bind,
    Tile,
    CacheShared,
    WarpTile,
    RegisterBlock,
    TensorCore,
    Vectorize,
    Pad,
    Swizzle,
    DoubleBuffer,
    AsyncCopy,
    Residue,
    Unroll,
    LaunchBounds,
    Raster,
    SplitK,
)
"""Every directive with operands and arguments; ``FuseEpilogue`` comes last."""


def passes_of(schedule: Schedule) -> tuple[Pass, ...]:
    """The passes that a schedule asks for, in ladder order."""
    found: list[Pass] = []
    for rung in LADDER:
        stated = Stated.of(schedule, rung.SPEC.name)
        if stated is not None:
            found.append(rung.read(stated, schedule))
    fused = FuseEpilogue.of(schedule)
    return (*found, fused) if fused else tuple(found)
