"""Tiles, warp tiles, micro-tiles and stages that have measured well for some shape."""

from __future__ import annotations

from gemmgen.explore.suggest.request import Request
from gemmgen.explore.suggest.schedules import Form, on_tensor_cores


def _both(*forms: Form) -> tuple[Form, ...]:
    """Each form, and its mirror image if that differs."""
    found = (x for form in forms for x in (form, form.mirrored()))
    return tuple(dict.fromkeys(found))


def _block(
    tile: tuple[int, int, int],
    warp: tuple[int, int],
    micro: tuple[int, int],
    stages: int,
    blocks: int = 0,
) -> Form:
    return Form("block", tile, micro, warp, stages, blocks)


_LARGE = _both(
    _block((128, 256, 16), (32, 64), (8, 8), 2),
    _block((128, 256, 8), (64, 64), (8, 16), 4),
    _block((96, 128, 16), (48, 64), (12, 8), 3, blocks=3),
    _block((64, 256, 16), (32, 64), (8, 8), 3),
    _block((128, 128, 8), (32, 64), (8, 8), 4),
    _block((128, 128, 16), (64, 32), (8, 8), 3),
    _block((64, 128, 16), (64, 32), (8, 8), 4),
    _block((32, 256, 16), (32, 64), (8, 8), 4),
    _block((64, 128, 16), (64, 32), (8, 8), 2),
    _block((64, 128, 8), (64, 32), (8, 8), 3),
    _block((64, 64, 8), (32, 32), (8, 4), 3),
    _block((128, 128, 16), (64, 32), (8, 8), 2),
    _block((128, 256, 16), (64, 64), (8, 16), 2),
    _block((64, 64, 16), (32, 32), (8, 4), 2),
)
_SHORT = _both(
    _block((64, 128, 8), (64, 32), (8, 8), 4),
    _block((64, 64, 8), (32, 32), (8, 4), 4),
    _block((32, 128, 8), (32, 32), (8, 4), 4),
    _block((32, 64, 8), (32, 16), (4, 4), 4),
    _block((32, 64, 16), (32, 16), (4, 4), 3),
)
_SMALL = _both(
    _block((64, 64, 32), (32, 32), (8, 4), 3),
    _block((32, 128, 16), (32, 32), (8, 4), 4),
    _block((32, 64, 64), (32, 16), (4, 4), 2),
    _block((32, 64, 32), (32, 16), (4, 4), 3),
    _block((32, 32, 64), (16, 16), (2, 4), 2),
    _block((32, 32, 32), (16, 16), (2, 4), 4),
    _block((16, 64, 32), (16, 16), (2, 4), 4),
    _block((16, 32, 64), (8, 16), (2, 2), 3),
    _block((16, 16, 64), (8, 8), (2, 1), 3),
    _block((16, 128, 32), (16, 32), (4, 4), 3),
    _block((16, 256, 16), (16, 32), (4, 4), 4),
    _block((64, 64, 8), (32, 16), (4, 4), 2),
    _block((32, 64, 16), (32, 16), (4, 4), 1),
    _block((16, 32, 32), (8, 16), (2, 2), 1),
    _block((16, 16, 64), (8, 8), (2, 1), 1),
    _block((16, 16, 128), (8, 8), (2, 1), 2),
    _block((8, 32, 64), (4, 16), (1, 2), 3),
    _block((16, 32, 128), (8, 16), (2, 2), 2),
    _block((32, 32, 16), (16, 16), (2, 4), 4),
)
_NARROW = _both(
    _block((32, 128, 8), (16, 32), (16, 1), 2),
    _block((64, 64, 16), (16, 32), (16, 1), 3),
    _block((64, 128, 8), (16, 32), (16, 1), 3),
    _block((64, 128, 16), (16, 64), (16, 2), 3),
    _block((32, 128, 16), (16, 32), (8, 2), 3),
    _block((64, 64, 16), (16, 32), (8, 2), 3),
    Form("direct", (32, 32, 4), (8, 1)),
    Form("direct", (16, 32, 8), (2, 1)),
    Form("direct", (64, 32, 4), (16, 1)),
)
"""Micro-tiles whose warps have adjacent lanes along rows of C, so that their single stores fill
whole sectors."""
_SINGLE = (
    _block((128, 128, 16), (16, 128), (8, 8), 2),
    _block((128, 128, 16), (16, 128), (8, 8), 3),
    _block((128, 128, 16), (32, 64), (16, 4), 3),
    _block((128, 256, 8), (32, 128), (16, 8), 4),
    _block((256, 128, 8), (32, 128), (16, 8), 4),
    _block((64, 256, 16), (16, 128), (8, 8), 3),
    _block((64, 128, 16), (16, 128), (8, 8), 3),
    _block((64, 128, 16), (32, 64), (16, 4), 3),
    _block((128, 64, 16), (32, 64), (16, 4), 3),
    _block((64, 128, 8), (32, 64), (16, 4), 4),
    _block((128, 64, 8), (32, 64), (16, 4), 4),
    _block((64, 64, 16), (16, 64), (8, 4), 3),
    _block((64, 64, 32), (16, 64), (8, 4), 2),
    _block((64, 64, 8), (16, 64), (8, 4), 4),
    _block((32, 128, 16), (8, 128), (8, 4), 3),
    _block((64, 128, 16), (8, 128), (8, 4), 3),
    _block((32, 256, 16), (16, 128), (8, 8), 3),
    _block((32, 64, 32), (8, 64), (4, 4), 3),
    _block((32, 32, 32), (8, 32), (4, 2), 4),
    _block((64, 32, 16), (16, 32), (8, 2), 3),
    _block((128, 32, 16), (32, 32), (16, 2), 3),
    _block((256, 32, 16), (32, 32), (16, 2), 3),
    _block((16, 128, 32), (4, 128), (4, 4), 3),
    _block((16, 64, 32), (4, 64), (4, 2), 3),
)
"""For rows of C that are stored element by element: 16 or 32 lanes along them."""
_FEW = _both(
    _block((8, 128, 32), (8, 32), (2, 4), 4),
    _block((8, 64, 64), (8, 16), (2, 2), 3),
    _block((4, 128, 64), (4, 32), (1, 4), 3),
    _block((1, 512, 16), (1, 128), (1, 4), 4),
    _block((2, 256, 32), (2, 64), (1, 4), 3),
)
_LANES = _both(
    Form("lanes", (8, 1, 512), (1, 1)),
    Form("lanes", (4, 1, 512), (1, 1)),
    Form("lanes", (8, 1, 256), (2, 1)),
    Form("lanes", (8, 1, 128), (1, 1)),
    Form("lanes", (16, 1, 256), (2, 1)),
    Form("lanes", (4, 1, 1024), (1, 1)),
    Form("lanes", (1, 1, 2048), (1, 1)),
    Form("lanes", (2, 2, 512), (1, 1)),
    Form("lanes", (2, 2, 1024), (1, 1)),
    Form("lanes", (4, 2, 512), (1, 2)),
    Form("lanes", (4, 4, 256), (1, 2)),
    Form("lanes", (8, 4, 64), (1, 2)),
    Form("lanes", (8, 2, 256), (1, 2)),
    Form("lanes", (16, 2, 256), (2, 2)),
    Form("lanes", (8, 4, 256), (1, 4)),
    Form("lanes", (8, 4, 128), (2, 4)),
    Form("lanes", (4, 4, 32), (1, 1)),
    Form("lanes", (16, 1, 128), (2, 1)),
    Form("lanes", (16, 1, 256), (4, 1)),
    Form("lanes", (32, 1, 128), (4, 1)),
    Form("lanes", (16, 2, 256), (4, 2)),
    Form("lanes", (32, 2, 128), (4, 2)),
    Form("lanes", (8, 8, 128), (2, 4)),
)
_DIRECT = _both(
    Form("direct", (8, 32, 4), (1, 1)),
    Form("direct", (4, 32, 8), (1, 1)),
    Form("direct", (1, 128, 16), (1, 1)),
    Form("direct", (8, 128, 4), (1, 4)),
    Form("direct", (32, 128, 4), (4, 4)),
    Form("direct", (4, 256, 8), (4, 2)),
)
_DOUBLE = _both(
    _block((64, 128, 8), (32, 32), (4, 8), 2),
    _block((64, 64, 16), (32, 32), (4, 8), 2),
    _block((32, 64, 16), (16, 32), (4, 4), 2),
    _block((32, 32, 16), (16, 16), (2, 4), 3),
    _block((16, 32, 32), (8, 16), (2, 2), 3),
    _block((8, 256, 8), (8, 32), (2, 4), 2),
    _block((8, 64, 32), (8, 16), (2, 2), 3),
)


def _tensor(tile: tuple[int, int, int], warp: tuple[int, int], stages: int) -> Form:
    return Form("tensor", tile, warp=warp, stages=stages)


_TENSOR = _both(
    _tensor((128, 256, 32), (64, 64), 3),
    _tensor((128, 128, 32), (64, 32), 3),
    _tensor((64, 128, 32), (32, 32), 3),
    _tensor((64, 64, 32), (32, 32), 3),
    _tensor((32, 64, 32), (16, 32), 3),
    _tensor((32, 64, 64), (16, 32), 3),
    _tensor((16, 128, 64), (16, 32), 3),
    _tensor((16, 64, 64), (16, 16), 4),
)


def forms(request: Request) -> tuple[Form, ...]:
    """The forms for the operands' types on the GPU."""
    if on_tensor_cores(request):
        return _TENSOR + _LANES
    if "f64" in (request.dtype("a"), request.dtype("b"), request.dtype("acc")):
        return _DOUBLE + _LANES + _DIRECT
    found = _LARGE + _SHORT + _SMALL + _FEW + _LANES + _DIRECT + _NARROW
    if request.width("c") == 1:
        across = request.along("c") == "m"
        found += tuple(form.mirrored() if across else form for form in _SINGLE)
    return tuple(dict.fromkeys(found))
