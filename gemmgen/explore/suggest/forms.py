"""Tiles, warp tiles, micro-tiles and stages that have measured well for some shape."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.explore.cost import Kind
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.schedules import Form
from gemmgen.ir.dtypes import BYTES

Pair = tuple[int, int]
Staged = tuple[int, int, int, int]
"""The m, n and k of a tile, and its stages in shared memory."""


def _both(*forms: Form) -> tuple[Form, ...]:
    """Each form, and its mirror image if that differs."""
    found = (x for form in forms for x in (form, form.mirrored()))
    return tuple(dict.fromkeys(found))


def _block(warp: Pair, micro: Pair, *tiles: Staged, blocks: int = 0) -> list[Form]:
    return [Form("block", (m, n, k), micro, warp, stages, blocks) for m, n, k, stages in tiles]


def _tensor(warp: Pair, *tiles: Staged) -> list[Form]:
    return [Form("tensor", (m, n, k), warp=warp, stages=stages) for m, n, k, stages in tiles]


def _unstaged(kind: Kind, micro: Pair, *tiles: tuple[int, int, int]) -> list[Form]:
    return [Form(kind, tile, micro) for tile in tiles]


_LARGE = _both(
    *_block((32, 64), (8, 8), (128, 256, 16, 2), (64, 256, 16, 3), (128, 128, 8, 4)),
    *_block((32, 64), (8, 8), (32, 256, 16, 4)),
    *_block((64, 64), (8, 16), (128, 256, 8, 4), (128, 256, 16, 2)),
    *_block((48, 64), (12, 8), (96, 128, 16, 3), blocks=3),
    *_block((64, 32), (8, 8), (128, 128, 16, 3), (64, 128, 16, 4), (64, 128, 16, 2)),
    *_block((64, 32), (8, 8), (64, 128, 8, 3), (128, 128, 16, 2)),
    *_block((32, 32), (8, 4), (64, 64, 8, 3), (64, 64, 16, 2)),
)
_SHORT = _both(
    *_block((64, 32), (8, 8), (64, 128, 8, 4)),
    *_block((32, 32), (8, 4), (64, 64, 8, 4), (32, 128, 8, 4)),
    *_block((32, 16), (4, 4), (32, 64, 8, 4), (32, 64, 16, 3)),
)
_SMALL = _both(
    *_block((32, 32), (8, 4), (64, 64, 32, 3), (32, 128, 16, 4)),
    *_block((32, 16), (4, 4), (32, 64, 64, 2), (32, 64, 32, 3), (64, 64, 8, 2), (32, 64, 16, 1)),
    *_block((16, 16), (2, 4), (32, 32, 64, 2), (32, 32, 32, 4), (16, 64, 32, 4), (32, 32, 16, 4)),
    *_block((8, 16), (2, 2), (16, 32, 64, 3), (16, 32, 32, 1), (16, 32, 128, 2)),
    *_block((8, 8), (2, 1), (16, 16, 64, 3), (16, 16, 64, 1), (16, 16, 128, 2)),
    *_block((16, 32), (4, 4), (16, 128, 32, 3), (16, 256, 16, 4)),
    *_block((4, 16), (1, 2), (8, 32, 64, 3)),
)
_NARROW = _both(
    *_block((16, 32), (16, 1), (32, 128, 8, 2), (64, 64, 16, 3), (64, 128, 8, 3)),
    *_block((16, 64), (16, 2), (64, 128, 16, 3)),
    *_block((16, 32), (8, 2), (32, 128, 16, 3), (64, 64, 16, 3)),
    *_unstaged("direct", (8, 1), (32, 32, 4)),
    *_unstaged("direct", (2, 1), (16, 32, 8)),
    *_unstaged("direct", (16, 1), (64, 32, 4)),
)
"""Micro-tiles whose warps have adjacent lanes along rows of C, so that their single stores fill
whole sectors."""
_SINGLE = (
    *_block((16, 128), (8, 8), (128, 128, 16, 2), (128, 128, 16, 3), (64, 256, 16, 3)),
    *_block((16, 128), (8, 8), (64, 128, 16, 3), (32, 256, 16, 3)),
    *_block((32, 64), (16, 4), (128, 128, 16, 3), (64, 128, 16, 3), (128, 64, 16, 3)),
    *_block((32, 64), (16, 4), (64, 128, 8, 4), (128, 64, 8, 4)),
    *_block((32, 128), (16, 8), (128, 256, 8, 4), (256, 128, 8, 4)),
    *_block((16, 64), (8, 4), (64, 64, 16, 3), (64, 64, 32, 2), (64, 64, 8, 4)),
    *_block((8, 128), (8, 4), (32, 128, 16, 3), (64, 128, 16, 3)),
    *_block((8, 64), (4, 4), (32, 64, 32, 3)),
    *_block((8, 32), (4, 2), (32, 32, 32, 4)),
    *_block((16, 32), (8, 2), (64, 32, 16, 3)),
    *_block((32, 32), (16, 2), (128, 32, 16, 3), (256, 32, 16, 3)),
    *_block((4, 128), (4, 4), (16, 128, 32, 3)),
    *_block((4, 64), (4, 2), (16, 64, 32, 3)),
)
"""For rows of C that are stored element by element: 16 or 32 lanes along them."""
_FEW = _both(
    *_block((8, 32), (2, 4), (8, 128, 32, 4)),
    *_block((8, 16), (2, 2), (8, 64, 64, 3)),
    *_block((4, 32), (1, 4), (4, 128, 64, 3)),
    *_block((1, 128), (1, 4), (1, 512, 16, 4)),
    *_block((2, 64), (1, 4), (2, 256, 32, 3)),
)
_LANES = _both(
    *_unstaged("lanes", (1, 1), (8, 1, 512), (4, 1, 512), (8, 1, 128), (4, 1, 1024), (1, 1, 2048)),
    *_unstaged("lanes", (1, 1), (2, 2, 512), (2, 2, 1024), (4, 4, 32)),
    *_unstaged("lanes", (2, 1), (8, 1, 256), (16, 1, 256), (16, 1, 128)),
    *_unstaged("lanes", (1, 2), (4, 2, 512), (4, 4, 256), (8, 4, 64), (8, 2, 256)),
    *_unstaged("lanes", (2, 2), (16, 2, 256)),
    *_unstaged("lanes", (1, 4), (8, 4, 256)),
    *_unstaged("lanes", (2, 4), (8, 4, 128), (8, 8, 128)),
    *_unstaged("lanes", (4, 1), (16, 1, 256), (32, 1, 128)),
    *_unstaged("lanes", (4, 2), (16, 2, 256), (32, 2, 128)),
)
_DIRECT = _both(
    *_unstaged("direct", (1, 1), (8, 32, 4), (4, 32, 8), (1, 128, 16)),
    *_unstaged("direct", (1, 4), (8, 128, 4)),
    *_unstaged("direct", (4, 4), (32, 128, 4)),
    *_unstaged("direct", (4, 2), (4, 256, 8)),
)
_DOUBLE = _both(
    *_block((32, 32), (4, 8), (64, 128, 8, 2), (64, 64, 16, 2)),
    *_block((16, 32), (4, 4), (32, 64, 16, 2)),
    *_block((16, 16), (2, 4), (32, 32, 16, 3)),
    *_block((8, 16), (2, 2), (16, 32, 32, 3), (8, 64, 32, 3)),
    *_block((8, 32), (2, 4), (8, 256, 8, 2)),
)
"""For operands of 2 bytes."""
_TENSOR = _both(
    *_tensor((64, 64), (128, 256, 32, 3)),
    *_tensor((64, 32), (128, 128, 32, 3)),
    *_tensor((32, 32), (64, 128, 32, 3), (64, 64, 32, 3)),
    *_tensor((16, 32), (32, 64, 32, 3), (32, 64, 64, 3), (16, 128, 64, 3)),
    *_tensor((16, 16), (16, 64, 64, 4)),
)


def _of_bytes(form: Form, size: int) -> Form:
    """A form with tiles of as many bytes along k, for operands of ``size`` bytes, or of 16
    elements."""
    m, n, k = form.tile
    return replace(form, tile=(m, n, max(16, k * 2 // size)))


def forms(request: Request) -> tuple[Form, ...]:
    """The forms for the operands' types on the GPU."""
    tensor: tuple[Form, ...] = ()
    if request.atom is not None:
        size = BYTES[request.dtype["a"]]
        tensor = tuple(_of_bytes(form, size) for form in _TENSOR)
        tensor = tuple(form for form in tensor if request.scaled_terms % form.tile[2] == 0)
    if "f64" in (request.dtype["a"], request.dtype["b"], request.dtype["acc"]):
        return tensor + _DOUBLE + _LANES + _DIRECT
    if tensor:
        return tensor + _LANES
    found = _LARGE + _SHORT + _SMALL + _FEW + _LANES + _DIRECT + _NARROW
    if request.width["c"] == 1:
        across = request.along["c"] == "m"
        found += tuple(form.mirrored() if across else form for form in _SINGLE)
    return tuple(dict.fromkeys(found))
