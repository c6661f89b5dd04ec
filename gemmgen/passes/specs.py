"""The ladder's directives in order: what each may say."""

from __future__ import annotations

from gemmgen.passes import (
    bind,
    cache_shared,
    double_buffer,
    pad,
    raster,
    register_block,
    tile,
    vectorize,
    warp_tile,
)
from gemmgen.schedule.spec import DirectiveSpec

SPECS: tuple[DirectiveSpec, ...] = (
    bind.SPEC,
    tile.SPEC,
    cache_shared.SPEC,
    warp_tile.SPEC,
    register_block.SPEC,
    vectorize.SPEC,
    pad.SPEC,
    double_buffer.SPEC,
    raster.SPEC,
)
"""Ladder order.  ``fuse_epilogue``, whose argument is an expression, comes after all of these."""
