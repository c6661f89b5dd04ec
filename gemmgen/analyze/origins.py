"""Which tile of C each block computes, and its range of k: asked of the kernel's own first
lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gemmgen.interpreter.evaluate import Ints, Value
from gemmgen.interpreter.expressions import Scope, compile_expression, known
from gemmgen.ir.control import Block, Define
from gemmgen.ir.lowered import Advance, LoweredKernel, Node
from gemmgen.ir.names import tile_origin

AT_ONCE = 1 << 18


def origins_of(
    kernel: LoweredKernel, values: Mapping[str, int | float]
) -> Iterator[tuple[Ints, tuple[Ints, ...], tuple[Ints, ...], tuple[Ints, ...]]]:
    """Numbers of blocks; for each of ``interface.tiles`` the first index of their tiles; for each
    tensor with batches the place where their matrix begins; and where several share a tile, where
    their parts of k start and stop."""
    interface = kernel.interface
    grid = interface.grid({name: int(values[name]) for name in interface.shaping()})
    for first in range(0, grid, AT_ONCE):
        blocks = np.arange(first, min(first + AT_ONCE, grid))
        yield blocks, *_origins(kernel, values, blocks)


def _origins(
    kernel: LoweredKernel, values: Mapping[str, int | float], blocks: Ints
) -> tuple[tuple[Ints, ...], tuple[Ints, ...], tuple[Ints, ...]]:
    scope = Scope()
    for name, value in {"blockIdx.x": blocks, "threadIdx.x": 0, "threadIdx.y": 0}.items():
        scope.bind(name, known(value, "int"))
    for param in kernel.interface.params:
        if param.kind in ("extent", "ld", "stride"):
            scope.bind(param.name, known(int(values[param.name]), "int"))
    for constant in kernel.constants:
        scope.bind(constant.name, known(constant.value, "int"))

    def of_each(value: Value) -> Ints:
        return np.broadcast_to(np.asarray(value, np.int64), blocks.size)

    found: dict[str, Value] = {}
    moved: list[Ints] = []
    letters = _tiled(kernel)
    for line in _first_lines(kernel.body):
        if isinstance(line, Advance):
            moved.append(of_each(compile_expression(line.by, scope).run(None)))
            continue
        found[line.name] = compile_expression(line.value, scope).run(None)
        scope.bind(line.name, known(found[line.name], "int"))
        names = tuple(_origin_name(letter, found) for letter in letters)
        ranges = _range_names(kernel, found)
        if all(name in found for name in (*names, *ranges)):
            bounds = tuple(of_each(found[n]) for n in ranges)
            return tuple(of_each(found[n]) for n in names), tuple(moved), bounds
    raise AssertionError(f"{kernel.interface.name} does not say which tile a block computes")


def _range_names(kernel: LoweredKernel, found: Mapping[str, Value]) -> tuple[str, ...]:
    """``start_k`` and ``stop_k``; () where a block has a tile for itself."""
    if kernel.interface.parts == 1:
        return ()
    stems = ("start_", "stop_")
    return tuple(next((name for name in found if name.startswith(s)), "") for s in stems)


def _tiled(kernel: LoweredKernel) -> tuple[str, ...]:
    """The letters of ``interface.tiles``: two extents that are assumed equal have one name."""
    interface = kernel.interface
    output = next(p.indices for p in interface.params if p.written)
    batches = dict(interface.batches)
    rows = [letter for letter in output if letter not in batches]
    names = [name for name, _ in interface.tiles]
    straight = [interface.extent(letter) for letter in rows] == names
    return tuple(rows if straight else reversed(rows))


def _first_lines(body: tuple[Node, ...]) -> Iterator[Define | Advance]:
    for node in body:
        if isinstance(node, Block):
            yield from _first_lines(node.body)
        elif isinstance(node, Advance) or (isinstance(node, Define) and node.kind == "int"):
            yield node


def _origin_name(letter: str, found: Mapping[str, Value]) -> str:
    """``tile_m``; in a kernel with an element a thread ``m``, here of thread (0, 0)."""
    tile = tile_origin(letter).name
    return tile if tile in found else letter
