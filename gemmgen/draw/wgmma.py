"""wgmma's operands: the instruction tiles of a step, and the banks of their core matrices.

A warpgroup multiplies tiles in shared memory, which descriptors name.  The unit of their layout is
PTX's core matrix: 8 rows of 16 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gemmgen.base.record import record
from gemmgen.draw.marks import CONFLICT, A, B, Cell, Drawing, Label, Mark, Meaning, warp
from gemmgen.draw.owners import owners
from gemmgen.draw.scene import Scene
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction, tile_of
from gemmgen.ir.problem import Tensor

WARPS = 4
"""The warps of a warpgroup."""
ROWS, CHUNK, BANK, BANKS = 8, 16, 4, 32
"""Rows of a core matrix and their bytes; bytes of a bank, and how many there are."""
_INSTRUCTION = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)")
_LEFT, _TOP, _BETWEEN, _CELL = 64.0, 64.0, 72.0, 40.0
_BANK, _APART = 9.0, 48.0
"""Pixels of a bank, and between two core matrices."""


@record
class InstructionTile:
    """``m`` x ``n`` x ``k`` of one instruction."""

    m: int
    n: int
    k: int


def multiplies_in_place(scene: Scene) -> bool:
    """Whether warpgroups multiply tiles in shared memory."""
    return ATOMS[contraction(scene.main).atom].in_place


def instruction_of(scene: Scene) -> InstructionTile:
    """The shape of the emitted instruction."""
    found = _INSTRUCTION.search(scene.kernel.emitted.text)
    assert found is not None, "the emitted text has no wgmma"
    return InstructionTile(64, int(found[1]), int(found[2]))


def instruction_tiles(scene: Scene) -> Drawing:
    """The tile of the instruction's rows to the left (A's, unless operands are exchanged), that of
    its columns above, the accumulators where they meet, cut into instruction tiles; numbers are the
    order along k."""
    tile, step = instruction_of(scene), scene.step
    assert step is not None
    work, problem = scene.main.work, scene.problem
    m, n = work.size(problem.m) // tile.m, work.size(problem.n) // tile.n
    steps = step // tile.k
    groups = owners(scene).warps // WARPS
    if problem.swapped:  # rows of instructions go down
        groups = groups.T
    beside, above = (B, A) if problem.swapped else (A, B)
    wide = max(_CELL * 2, 320.0 / n)
    left = _LEFT + _CELL * steps + _BETWEEN
    top = _TOP + _CELL * steps + _BETWEEN
    marks: list[Mark] = [
        Label(_LEFT, top - 24, f"{_tile(scene, problem.a).name}, {_major(scene, problem.a)}"),
        Label(left, _TOP - 40, f"{_tile(scene, problem.b).name}, {_major(scene, problem.b)}"),
        Label(left, top - 24, "accumulators, by warpgroup"),
    ]
    for at in range(steps):
        for row in range(m):
            about = f"wgmma {at}: {problem.a.name}, {tile.m} x {tile.k}"
            box = (_LEFT + at * _CELL, top + row * _CELL * 2, _CELL, _CELL * 2)
            marks.append(Cell(*box, beside, str(at), about))
        for column in range(n):
            about = f"wgmma {at}: {problem.b.name}, {tile.k} x {tile.n}"
            box = (left + column * wide, _TOP + at * _CELL, wide, _CELL)
            marks.append(Cell(*box, above, str(at), about))
    for row in range(m):
        for column in range(n):
            group = int(groups[row * tile.m, column * tile.n])
            box = (left + column * wide, top + row * _CELL * 2, wide, _CELL * 2)
            about = f"warpgroup {group}: {tile.m} x {tile.n} of {problem.c.name}"
            marks.append(Cell(*box, warp(group), f"warpgroup {group}", about))
    accumulators = tile.m * tile.n // (WARPS * 32)
    pieces = m * n // len({int(g) for g in groups.reshape(-1)})
    name, (first, second) = f"m{tile.m}n{tile.n}k{tile.k}", problem.factors
    each = f"{steps * pieces} wgmma {name} per warpgroup"
    products = contraction(scene.main).products
    each += f" for each of {products} products of terms" if products > 1 else ""
    description = (
        f"A step of {step} along k is {each}. Descriptors name {first.name} and {second.name} in "
        f"shared memory; a thread holds {accumulators * pieces} accumulators."
    )
    title = f"{scene.kernel.emitted.name}: the instruction tiles of a step"
    return Drawing(title, description, left + wide * n + 16, top + _CELL * 2 * m + 16, tuple(marks))


def _major(scene: Scene, operand: Tensor) -> str:
    """``K-major`` or ``MN-major``."""
    letters = _tile(scene, operand).letters
    return "K-major" if letters[-1] == scene.problem.k else "MN-major"


def _tile(scene: Scene, operand: Tensor) -> Buffer:
    """The operand's tile in shared memory, which the instruction reads."""
    found = tile_of(scene.main, operand.name)
    assert found is not None
    return found


def core_matrices(scene: Scene) -> Drawing:
    """For each operand the banks of a core matrix, without a swizzle and as stored."""
    marks: list[Mark] = []
    sentences: list[str] = []
    y, width = 0.0, 0.0
    for operand, meaning in ((scene.written.a, A), (scene.written.b, B)):
        buffer = _tile(scene, operand)
        plain, stored = _groups(buffer, swizzled=False), _groups(buffer, swizzled=True)
        x = _LEFT
        panels = [("without swizzle", plain)]
        panels += [("swizzled", stored)] if buffer.swizzle is not None else []
        for heading, found in panels:
            title = f"{buffer.name}, {heading}: {_ways(found)}"
            marks += _panel(title, found, meaning, x, y)
            x += _BANK * BANKS + _APART
        width = max(width, x - _APART + 16)
        said = f"{_ways(plain)} without swizzle"
        said += f", {_ways(stored)} with it" if buffer.swizzle is not None else ""
        sentences.append(f"{buffer.name}: {said}.")
        y += _TOP + 20 * ROWS + 32
    description = "A core matrix is 8 rows of 16 bytes; columns are banks. " + " ".join(sentences)
    title = f"{scene.kernel.emitted.name}: the banks of wgmma's core matrices"
    return Drawing(title, description, width, y, tuple(marks))


def _groups(buffer: Buffer, *, swizzled: bool) -> list[int]:
    """The first bank of each row of the first core matrix."""
    size = BYTES[buffer.dtype]
    row = buffer.row
    found: list[int] = []
    for at in range(ROWS):
        column = buffer.swizzle.column(at, 0) if swizzled and buffer.swizzle else 0
        found.append((at * row + column) * size // BANK % BANKS)
    return found


def _ways(groups: list[int]) -> str:
    worst = max(groups.count(group) for group in groups)
    return "no conflict" if worst == 1 else f"{worst}-way conflict"


def _panel(title: str, groups: list[int], meaning: Meaning, x: float, y: float) -> Iterator[Mark]:
    yield Label(x, y + 16, title)
    for bank in range(0, BANKS, BANK):
        yield Label(x + bank * _BANK, y + _TOP - 14, str(bank), size="small", quiet=True)
    for row, first in enumerate(groups):
        top = y + _TOP + row * 20
        yield Label(x - 8, top + 10, str(row), "end", "small", quiet=True)
        yield Cell(x, top, _BANK * BANKS, 18)
        worst = groups.count(first) > 1
        about = f"row {row}: banks {first} to {first + CHUNK // BANK - 1}"
        box = (x + first * _BANK, top, _BANK * CHUNK / BANK, 18)
        yield Cell(*box, CONFLICT if worst else meaning, str(row), about)
