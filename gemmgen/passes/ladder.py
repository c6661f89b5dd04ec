"""The ladder: the passes in the order in which they run.

A directive is one file in this folder; its docstring is what ``gemmgen help`` prints.  To add a
rung, write the file and put its class in this list.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.passes.async_copy import AsyncCopy
from gemmgen.passes.base import Pass, Stated
from gemmgen.passes.bind import Bind
from gemmgen.passes.cache_shared import CacheShared
from gemmgen.passes.cluster import Cluster
from gemmgen.passes.decompose import Decompose
from gemmgen.passes.double_buffer import DoubleBuffer
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.l2 import L2
from gemmgen.passes.launch_bounds import LaunchBounds
from gemmgen.passes.overlap_launch import OverlapLaunch
from gemmgen.passes.pad import Pad
from gemmgen.passes.persistent import Persistent
from gemmgen.passes.raster import Raster
from gemmgen.passes.register_block import RegisterBlock
from gemmgen.passes.residue import Residue
from gemmgen.passes.split_k import SplitK
from gemmgen.passes.swizzle import Swizzle
from gemmgen.passes.tensor_core import TensorCore
from gemmgen.passes.tile import Tile
from gemmgen.passes.unroll import Unroll
from gemmgen.passes.vectorize import Vectorize
from gemmgen.passes.warp_specialize import WarpSpecialize
from gemmgen.passes.warp_tile import WarpTile
from gemmgen.schedule.model import Schedule

LADDER = (
    Bind,
    Tile,
    CacheShared,
    WarpTile,
    RegisterBlock,
    Decompose,
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
    Persistent,
    WarpSpecialize,
    Cluster,
    L2,
    OverlapLaunch,
)
"""Every directive with operands and arguments; ``FuseEpilogue`` comes last."""


def passes_of(schedule: Schedule) -> Iterator[Pass]:
    """The passes that a schedule asks for, in their order, each read when it is needed."""
    names = {directive.name for directive in schedule.directives}
    for rung in LADDER:
        name = rung.SPEC.name
        stated = Stated.of(schedule.directives, name) if name in names else None
        if stated is not None:
            yield rung.read(stated, schedule.gemm)
    if schedule.epilogue:
        yield FuseEpilogue(schedule.epilogue)
