"""The tile of C of each block, and its range of k, computed by the kernel's own first lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from gemmgen.analyze.accesses import Site
from gemmgen.analyze.recorder import Recorder
from gemmgen.analyze.watched_memory import Watch
from gemmgen.interpreter.node_table import code_for
from gemmgen.interpreter.scope import FrameSlot
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir import names
from gemmgen.ir.control import Block, Define, For
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.names import tile_origin
from gemmgen.ir.thread_code import Advance, Invoke, Node, is_over_tiles
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.numerics.operators import Ints

AT_ONCE = 1 << 18
Origins = tuple[Ints, tuple[Ints, ...], tuple[Ints, ...], tuple[Ints, ...]]


def origins_of(kernel: LoweredKernel, values: Mapping[str, int | float]) -> Iterator[Origins]:
    """Numbers of blocks; for each of ``interface.tiles`` the first index of their tiles; for each
    tensor with batches the offset of their matrix; and if several share a tile, the start and stop
    of their parts of k."""
    interface = kernel.interface
    tiles = interface.tile_count({name: int(values[name]) for name in interface.shaping()})
    grid = tiles * interface.parts
    for first in range(0, grid, AT_ONCE):
        yield origins_at(kernel, values, np.arange(first, min(first + AT_ONCE, grid)))


def origins_at(kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints) -> Origins:
    """The same of some ``blocks``, by their numbers."""
    return blocks, *_origins(kernel, values, blocks)


def _origins(
    kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints
) -> tuple[tuple[Ints, ...], tuple[Ints, ...], tuple[Ints, ...]]:
    names, lines = _until_known(kernel)
    lanes = Lanes(0, blocks.size, 1, 1)
    code = code_for(Recorder(kernel, lanes, blocks, values, Watch(_nothing, lambda: None)))
    run = code.kernel(replace(kernel, body=lines))
    assert run is not None
    run(None)

    def of_each(slot: FrameSlot | None) -> Ints:
        assert slot is not None
        value = np.asarray(code.scope.frame[slot.number], np.int64)
        return np.broadcast_to(value, blocks.size)

    origins, ranges = (tuple(of_each(code.scope.slot(name)) for name in some) for some in names)
    moved = dict.fromkeys(line.tensor for line in lines if isinstance(line, Advance))
    return origins, tuple(of_each(code.scope.array(name).first) for name in moved), ranges


def _nothing(site: Site, index: Index, mask: Mask) -> None:
    """A kernel's first lines access no memory that counts."""


def _until_known(
    kernel: LoweredKernel,
) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], tuple[Node, ...]]:
    """The names of the tile's origins and of the bounds of its part, and the lines that end with
    the last of them."""
    letters, found = _tiled(kernel), list[str]()
    lines: list[Node] = []
    for line in _first_lines(kernel.body):
        lines.append(line)
        if isinstance(line, Define):
            found.append(line.name)
        elif isinstance(line, Invoke):
            found += line.function.results
        origins = tuple(_origin_name(letter, found) for letter in letters)
        ranges = _range_names(kernel, found)
        if {*origins, *ranges}.issubset(found):
            return (origins, ranges), tuple(lines)
    raise AssertionError(f"{kernel.interface.name} does not say which tile a block computes")


def _range_names(kernel: LoweredKernel, found: Collection[str]) -> tuple[str, ...]:
    """``start_k`` and ``stop_k``; () if a block has a tile for itself."""
    if kernel.interface.parts == 1:
        return ()
    k = contraction(kernel.interface).k
    own = (names.start(k).name, names.stop(k).name)
    return tuple(name if name in found else "" for name in own)


def _tiled(kernel: LoweredKernel) -> tuple[str, ...]:
    """The letters of ``interface.tiles``: two extents that are assumed equal have one name."""
    interface = kernel.interface
    output = next(p.indices for p in interface.params if p.written)
    batches = dict(interface.batches)
    rows = [letter for letter in output if letter not in batches]
    names = [name for name, _ in interface.tiles]
    straight = [interface.extent(letter) for letter in rows] == names
    return tuple(rows if straight else reversed(rows))


def _first_lines(body: tuple[Node, ...]) -> Iterator[Define | Advance | Invoke]:
    for node in body:
        if isinstance(node, For) and is_over_tiles(node):
            yield Define(node.variable, node.start)
        if isinstance(node, Block) or (isinstance(node, For) and is_over_tiles(node)):
            yield from _first_lines(node.body)
        elif isinstance(node, WarpRoles):
            yield from _first_lines(node.roles[-1].body)
        elif _places(node):
            yield cast("Define | Advance | Invoke", node)


def _places(node: Node) -> bool:
    """Whether it computes a number, or moves a tensor's begin."""
    match node:
        case Define(kind="int") | Advance():
            return True
        case Invoke(function):
            return bool(function.results)
        case _:
            return False


def _origin_name(letter: str, found: Collection[str]) -> str:
    """``tile_m``; in a kernel with an element a thread ``m``, here of thread (0, 0)."""
    tile = tile_origin(letter).name
    return tile if tile in found else letter
