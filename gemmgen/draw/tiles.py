"""The matrices: A to the left, B above, C where they meet, cut into the tiles of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.tile_origins import origins_of
from gemmgen.base.record import record
from gemmgen.draw.cuts import Cut, Part, cut
from gemmgen.draw.marks import A, B, C, Cell, Drawing, Label, Mark, Meaning, Stroke
from gemmgen.draw.scene import Scene
from gemmgen.ir.edit import begins_early
from gemmgen.ir.problem import Tensor

_LEFT, _TOP = 32.0, 48.0
_BESIDE, _BELOW = 80.0, 80.0
"""Pixels between A and C, and between B and C."""
_TILE, _ACROSS, _DOWN = 80.0, 48.0, 32.0
"""Pixels of a tile's longer side in C, and of a step along k in A and in B."""
_ARROW = 40.0


@record
class _Matrix:
    """A matrix with its letters down and across, and its upper left corner."""

    tensor: Tensor
    meaning: Meaning
    letters: tuple[str, str]
    down: Cut
    across: Cut
    x: float
    y: float


@record
class _Layout:
    """``block`` is the number of the block that is marked, ``k`` its range of k, and ``own`` the
    numbers of its parts of each letter."""

    scene: Scene
    block: int
    k: range
    own: dict[str, range]
    matrices: tuple[_Matrix, _Matrix, _Matrix]


def draw(scene: Scene) -> Drawing:
    """One block's tile of C, its strips of A and of B, and its steps along k."""
    layout = _layout(scene)
    c = layout.matrices[2]
    title = f"{scene.kernel.emitted.name}: the tiles of a block"
    marks: list[Mark] = []
    for matrix in layout.matrices:
        marks += sorted(_cells(layout, matrix), key=lambda cell: cell.strong)
        marks += _around(scene, matrix)
    marks += _lines_of_a_thread(layout) if scene.step is None else ()
    marks += _dimensions(layout)
    size = (c.x + c.across.length + 16, c.y + c.down.length + 24)
    return Drawing(title, " ".join(_notes(layout)), *size, tuple(marks))


def _layout(scene: Scene) -> _Layout:
    problem, work, shape = scene.written, scene.main.work, scene.shape()
    sizes = [work.size(problem.m), work.size(problem.n)]
    tall, wide = (max(48.0, _TILE * size / max(sizes)) for size in sizes)
    m, n = cut(shape[0], sizes[0], tall), cut(shape[1], sizes[1], wide)
    step, steps = (scene.step, 1) if scene.step else (shape[2], 4)
    early = begins_early(scene.main)
    across, down = (
        cut(shape[2], step, steps * pixels, ragged_first=early) for pixels in (_ACROSS, _DOWN)
    )
    row, column = (x.parts[min(1, x.count - 1)] for x in (m, n))
    begin = {problem.m: row.begin, problem.n: column.begin}
    block, start, stop = _block(scene, begin)
    before = across.count * step - shape[2] if early else 0
    own = {problem.m: range(row.number, row.number + 1)}
    own[problem.n] = range(column.number, column.number + 1)
    own[problem.k] = range((max(start, 0) + before) // step, -(-(stop + before) // step))
    x, y = _LEFT + across.length + _BESIDE, _TOP + down.length + _BELOW
    a = _Matrix(problem.a, A, (problem.m, problem.k), m, across, _LEFT, y)
    b = _Matrix(problem.b, B, (problem.k, problem.n), down, n, x, _TOP)
    c = _Matrix(problem.c, C, (problem.m, problem.n), m, n, x, y)
    return _Layout(scene, block, range(max(start, 0), stop), own, (a, b, c))


def _block(scene: Scene, begin: Mapping[str, int]) -> tuple[int, int, int]:
    """The first block whose tile begins there, and its range of k, as its own first lines compute
    them."""
    first, second = (begin[letter] for letter, _ in scene.main.work.tile)
    lowered, shape = scene.kernel.lowered, scene.shape()
    values = arguments_of(lowered.interface, scene.problem, shape)
    for blocks, (down, across), _, ranges in origins_of(lowered, values):
        found = np.flatnonzero((down == first) & (across == second))
        if found.size:
            start, stop = (int(edge[found[0]]) for edge in ranges) if ranges else (0, shape[2])
            return int(blocks[found[0]]), start, min(stop, shape[2])
    raise AssertionError("no block has the tile")


def _cells(layout: _Layout, matrix: _Matrix) -> Iterator[Cell]:
    """The parts that are drawn; those of the block have a color, and those of operands the number
    of the step."""
    for row in matrix.down.parts:
        for column in matrix.across.parts:
            parts = dict(zip(matrix.letters, (row, column), strict=True))
            at = (matrix.x + column.at, matrix.y + row.at, column.length, row.length)
            if all(part.number in layout.own[letter] for letter, part in parts.items()):
                yield _own(layout, matrix, parts, at)
            else:
                yield Cell(*at)


def _own(
    layout: _Layout,
    matrix: _Matrix,
    parts: dict[str, Part],
    at: tuple[float, float, float, float],
) -> Cell:
    """A part that the block computes, or reads."""
    scene, problem = layout.scene, layout.scene.written
    letters = problem.matrix(matrix.tensor.letters)
    where = ", ".join(_range(letter, parts[letter]) for letter in letters)
    step = parts.get(problem.k)
    if step is None:
        text = what = f"block {layout.block}"
    else:
        text = str(step.number) if scene.step else ""
        what = f"step {step.number}" if scene.step else "read by the block"
    about = f"{what}: {matrix.tensor.name}[{where}]"
    strong = step is None or (scene.step is not None and step.number == layout.own[problem.k][0])
    return Cell(*at, matrix.meaning, text, about, strong=strong, size="normal")


def _range(letter: str, part: Part) -> str:
    last = part.stop - 1
    return f"{letter} {part.begin}" if part.begin == last else f"{letter} {part.begin}..{last}"


def _around(scene: Scene, matrix: _Matrix) -> Iterator[Mark]:
    """A matrix's name, an arrow along what is contiguous, dots where parts are left out."""
    letters = scene.written.matrix(matrix.tensor.letters)
    written = f"[{', '.join(letters)}]" if letters else ""
    yield Label(matrix.x, matrix.y - 28, f"{matrix.tensor.name}{written}", size="large")
    x, y = matrix.x, matrix.y - 8
    if letters and letters[-1] == matrix.letters[0]:
        x, y = matrix.x - 8, matrix.y
        yield Stroke(((x, y), (x, y + _ARROW)), matrix.meaning, arrow=True)
    elif letters:
        yield Stroke(((x, y), (x + _ARROW, y)), matrix.meaning, arrow=True)
    for gap in matrix.down.gaps:
        yield Label(matrix.x + matrix.across.length / 2, matrix.y + gap, "...", "middle")
    for gap in matrix.across.gaps:
        yield Label(matrix.x + gap, matrix.y + matrix.down.length / 2, "...", "middle")


def _first(layout: _Layout, letter: str, along: Cut) -> Part:
    """The block's first part of a letter."""
    return next(part for part in along.parts if part.number in layout.own[letter])


def _dimensions(layout: _Layout) -> Iterator[Mark]:
    """The extents of the block's tiles, beside its strips."""
    a, b, _ = layout.matrices
    scene, problem = layout.scene, layout.scene.written
    row, column = _first(layout, problem.m, a.down), _first(layout, problem.n, b.across)
    yield Label(
        a.x + a.across.length + 8,
        a.y + row.at + row.length / 2,
        f"BM = {scene.main.work.size(problem.m)}",
    )
    yield Label(
        b.x + column.at + column.length / 2,
        b.y + b.down.length + 12,
        f"BN = {scene.main.work.size(problem.n)}",
        "middle",
    )
    if scene.step:
        yield Label(a.x, a.y + a.down.length + 12, f"BK = {scene.step}")


def _lines_of_a_thread(layout: _Layout) -> Iterator[Mark]:
    """Without tiles along k: the row of A and the column of B that one element needs."""
    a, b, c = layout.matrices
    row = _first(layout, layout.scene.written.m, a.down)
    column = _first(layout, layout.scene.written.n, b.across)
    y, x = a.y + row.at, b.x + column.at
    yield Cell(a.x, y, a.across.length, 16, A, "", "a row of A, read by one thread", strong=True)
    yield Cell(x, b.y, 16, b.down.length, B, "", "a column of B, read by one thread", strong=True)
    yield Cell(c.x + column.at, y, 16, 16, C, "", "the element of a thread", strong=True)


def _notes(layout: _Layout) -> tuple[str, ...]:
    """The description, with its numbers."""
    scene, problem, work = layout.scene, layout.scene.written, layout.scene.main.work
    bm, bn = work.size(problem.m), work.size(problem.n)
    m, n, k = scene.shape()[:3]
    a, b, c = problem.a, problem.b, problem.c
    tiles = layout.matrices[0].down.count * layout.matrices[1].across.count
    shared = f"the work of {work.parts} blocks" if work.parts > 1 else "a block's work"
    if work.persistent:
        shared = "the work of a block, which walks over several"
    count = "one tile" if tiles == 1 else f"{tiles} tiles"
    found = [f"{c.name} is {m} x {n}, cut into {count} of {bm} x {bn}, each {shared}."]
    if problem.batch:
        found[0] = found[0].replace(".", f"; one matrix of the batch ({', '.join(problem.batch)}).")
    if scene.step is None:
        found.append(
            f"For each of its elements a block reads a row of {a.name} and a column of {b.name}: "
            f"{bm} x {bn} x 2K = {2 * k * bm * bn} reads for K = {k}."
        )
        return tuple(found)
    own, depth = layout.own[problem.k], len(layout.k)
    steps = f"takes {len(own)} steps" if len(own) > 1 else "takes one step"
    of_all = f" of {layout.matrices[0].across.count}" if work.parts > 1 else ""
    found.append(f"Block {layout.block} {steps}{of_all} of {scene.step} along k.")
    if scene.staged(a) and scene.staged(b):
        of_k = "K" if depth == k else str(depth)
        found.append(
            f"It reads {of_k}(BM + BN) = {depth} x ({bm} + {bn}) = {depth * (bm + bn)} elements."
        )
        if work.cluster:
            counts = dict(work.cluster)
            rows, columns = counts[problem.m], counts[problem.n]
            asked = depth * (bm // columns + bn // rows)
            found.append(
                f"Blocks of a cluster, {rows} x {columns} of them, share these: each loads "
                f"{depth} x ({bm} / {columns} + {bn} / {rows}) = {asked}."
            )
    else:
        direct = [x.name for x in (a, b) if not scene.staged(x)]
        found.append(f"Threads read {' and '.join(direct)} themselves, not by shared memory.")
    return tuple(found)
