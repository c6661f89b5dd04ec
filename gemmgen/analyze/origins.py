"""Which tile of C each block computes, and its range of k: asked of the kernel's own first
lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gemmgen.ir.closures import Scope, compile_expression, known
from gemmgen.ir.evaluate import Ints, Value
from gemmgen.ir.lowered import Block, Define, LoweredKernel, Node
from gemmgen.ir.names import extent, tile_origin

AT_ONCE = 1 << 18


def origins_of(
    kernel: LoweredKernel, values: Mapping[str, int | float]
) -> Iterator[tuple[Ints, tuple[Ints, ...]]]:
    """Numbers of blocks, and for each of ``interface.tiles`` the first index of their tiles; of
    blocks that share a tile also where their part of k starts and stops."""
    interface = kernel.interface
    grid = interface.grid({name: int(values[name]) for name, _ in interface.tiles})
    for first in range(0, grid, AT_ONCE):
        blocks = np.arange(first, min(first + AT_ONCE, grid))
        yield blocks, _origins(kernel, values, blocks)


def _origins(
    kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints
) -> tuple[Ints, ...]:
    scope = Scope()
    for name, value in {"blockIdx.x": blocks, "threadIdx.x": 0, "threadIdx.y": 0}.items():
        scope.bind(name, known(value, "int"))
    for param in kernel.interface.params:
        if param.kind in ("extent", "ld"):
            scope.bind(param.name, known(int(values[param.name]), "int"))
    for constant in kernel.constants:
        scope.bind(constant.name, known(constant.value, "int"))
    found: dict[str, Value] = {}
    wanted = tuple(name for name, _ in kernel.interface.tiles)
    for define in _first_lines(kernel.body):
        found[define.name] = compile_expression(define.value, scope).run(None)
        scope.bind(define.name, known(found[define.name], "int"))
        names = tuple(_origin_name(kernel, name, found) for name in wanted)
        if kernel.interface.parts > 1:
            names += (_range_name(found, "start_"), _range_name(found, "stop_"))
        if all(name in found for name in names):
            return tuple(
                np.broadcast_to(np.asarray(found[n], np.int64), blocks.size) for n in names
            )
    raise AssertionError(f"{kernel.interface.name} does not say which tile a block computes")


def _range_name(found: Mapping[str, Value], stem: str) -> str:
    """``start_k`` or ``stop_k``; "" before it is there."""
    return next((name for name in found if name.startswith(stem)), "")


def _first_lines(body: tuple[Node, ...]) -> Iterator[Define]:
    for node in body:
        if isinstance(node, Block):
            yield from _first_lines(node.body)
        elif isinstance(node, Define) and node.kind == "int":
            yield node


def _origin_name(kernel: LoweredKernel, name: str, found: Mapping[str, Value]) -> str:
    """``tile_m``; in a kernel with an element a thread ``m``, here of thread (0, 0)."""
    letters = next(p.indices for p in kernel.interface.params if p.written)
    letter = next(letter for letter in letters if extent(letter) == name)
    tile = tile_origin(letter).name
    return tile if tile in found else letter
