"""The shapes that each layer takes if none are given (``gemmgen verify`` without ``--shape``).

C0 and C3 call no kernel.  C1 takes ``c1_shapes``; C2 ``c2_shapes``, and for the calls of
``cases.reaching`` the larger ones below it; G2 ``g2_shapes``.
"""

from __future__ import annotations

from math import ceil, prod

from gemmgen.calling.dimensions import can_be_far
from gemmgen.ir.blocked_letters import count, plain
from gemmgen.ir.clusters import along
from gemmgen.ir.launch_shape import Shape
from gemmgen.pipeline import Emitted
from gemmgen.proof.literals import Crossing
from gemmgen.proof.shapes import fit, ragged_depth, ring_of, shallow_depth, tile_of, with_batches
from gemmgen.schedule.roles import batches, extents

_MOST_ROWS = 4000
"""Rows of all tensors of a far call: the CPU run sends each one separately."""
_BLOCKS = 40
"""The least blocks of a grid in one call."""
_DEPTH = 520
"""The least K of one call."""
_MOST_ELEMENTS = 5 << 20
"""Elements of C beyond which a second raster group is not tested."""
_LARGER: tuple[Shape, ...] = ((127, 131, 257), (512, 512, 512), (1000, 1100, 300))
_MANY: Shape = (2, 3, 5, 70_001)
"""A batch larger than the 65,535 blocks of a grid's other dimensions."""


def c1_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Few, as every pass is interpreted: less than a tile, and a little more than one along each
    letter of C, once with a K past the ring of stages."""
    m, n, _, _ = tile_of(emitted.program)
    ring = ring_of(emitted.program)
    wanted: tuple[Shape, ...] = ((2, 3, 5), (m + 1, 5, ring + 1), (3, n + 1, max(ring - 1, 1)))
    return tuple(dict.fromkeys(fit(emitted, shape) for shape in wanted))


def c2_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Small, ragged, one around each tile, more tiles than stages (also with only k ragged),
    several tiles, and K = 0; one batch, several, and none."""
    m, n, k, _ = tile_of(emitted.program)
    ring = ring_of(emitted.program)
    wanted: tuple[Shape, ...] = (
        (1, 1, 1),
        (2, 3, 5),
        (m - 1, n + 1, ring - 1),
        (m + 1, max(n - 1, 1), ring + 1),
        (m, n, 2 * k),
        (m, n, ring + k // 2 + 1),
        (2 * m + 3, 2 * n + 5, k + 1),
        (3, 5, 0),
    )
    count = len(batches(emitted.schedule.gemm))
    if count:
        # With coprime extents a wrong numbering may still reach all matrices.
        sizes = ((1,), (3, 2), (2, 2), (1, 2), (3, 1), (1, 1), (2, 1), (2, 3))
        wanted = tuple(
            (*shape, *(batch * count)[:count]) for shape, batch in zip(wanted, sizes, strict=True)
        )
        wanted += ((2, 3, 5, *(0, 2, 2, 2)[:count]),)
    return tuple(dict.fromkeys(fit(emitted, shape) for shape in wanted))


def whole_tiles(emitted: Emitted) -> Shape:
    """Several whole tiles, or clusters of them, along each letter, for which ``N / BN + 1`` is one
    too many; a second raster group, if that changes the order of tiles."""
    (m, n), k = _of_cluster(emitted), tile_of(emitted.program)[2]
    band = _band(emitted)
    sides = _as_written(emitted, (band + 1) * m, _columns(emitted) * n)
    return fit(emitted, with_batches(emitted, (*sides, min(k, 8)), 2))


def many_blocks(emitted: Emitted) -> Shape:
    """A last, shorter raster group, and large block numbers, of blocks that multiply; the last ones
    of clusters have tiles beyond C."""
    m, n = _of_cluster(emitted)
    parts, band = emitted.program.main.work.parts, _band(emitted)
    rows = band + 2 if band > 1 else 3 if parts > 1 else 5
    columns = max(_columns(emitted), ceil(_BLOCKS / (rows * parts)))
    depth = shallow_depth(emitted.program)
    sides = _as_written(emitted, (rows - 1) * m + 1, (columns - 1) * n + 1)
    return fit(emitted, with_batches(emitted, (*sides, depth), 1))


def _as_written(emitted: Emitted, rows: int, columns: int) -> Shape:
    """Extents along the rows and the columns of the instruction, in the order of the ``gemm``
    line's factors."""
    return (columns, rows) if emitted.program.problem.swapped else (rows, columns)


def _of_cluster(emitted: Emitted) -> tuple[int, int]:
    """Rows and columns of the tiles of a cluster, or of a block that runs alone."""
    problem, work = emitted.program.problem, emitted.program.main.work
    return work.size(problem.m) * along(work, problem.m), work.size(problem.n) * along(
        work, problem.n
    )


def _band(emitted: Emitted) -> int:
    """Block rows, or rows of clusters, of a raster group; 1 without a raster, or if the group is
    too large to test."""
    m, n = _of_cluster(emitted)
    work = emitted.program.main.work
    band, columns = work.raster, work.raster if work.order == "hilbert" else 1
    return band if (band + 2) * m * (columns * n + 1) <= _MOST_ELEMENTS else 1


def _columns(emitted: Emitted) -> int:
    """Block columns that show the order of the tiles: a square and one more along a curve."""
    band = _band(emitted)
    if band > 1 and emitted.program.main.work.order == "hilbert":
        return band + 1
    return 2 if band > 1 else 3


def few_terms(emitted: Emitted) -> tuple[Shape, ...]:
    """More rows, then more columns, than a step has terms, and less than one step along K: a kernel
    that takes another extent for K fails."""
    m, n, k, _ = tile_of(emitted.program)
    terms = k // 2 + 1
    wanted: tuple[Shape, ...] = ((k + m, min(n, 5), terms), (min(m, 5), k + n, terms))
    return tuple(fit(emitted, with_batches(emitted, shape, 1)) for shape in wanted)


def long_sums(emitted: Emitted) -> Shape:
    """Each stage is used several times; more rows than columns, both less than a tile."""
    _, _, k, stages = tile_of(emitted.program)
    ring = ring_of(emitted.program)
    depth = max(_DEPTH, 3 * k * stages, ring + k * stages) + k // 2 + 1
    return fit(emitted, with_batches(emitted, (9, 5, depth), 1))


def across(emitted: Emitted, crossing: Crossing) -> Shape:
    """One extent that crosses a constant of the text, and little work."""
    matrix = [3, 5, 3]
    matrix[crossing.letter] = crossing.extent
    return fit(emitted, with_batches(emitted, tuple(matrix), 1))


def stale_tiles(emitted: Emitted) -> Shape:
    """The last part of split-K has more tiles than stages, the last one of a single k: a stage that
    keeps elements of an earlier tile, or whole vectors of them along k, has them where a 0 belongs.
    """
    *_, stages = tile_of(emitted.program)
    depth = ragged_depth(emitted.program, stages + 1, 1)
    return fit(emitted, with_batches(emitted, (5, 9, depth), 1))


def far_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """For offsets that an int does not hold: whole tiles and ragged ones along the columns of C and
    along k, and less than one tile, of more rows than columns; none if neither a leading
    dimension nor a stride can be chosen."""
    if not can_be_far(emitted.interface):
        return ()
    m, n, k, _ = tile_of(emitted.program)
    depth = ragged_depth(emitted.program, 2, k // 2 + 1)
    large = ((m, n + 3, depth), (m // 2 + 1, n + 3, k + 3), (5, n + 3, 5))
    wanted = (*large, (9, 5, k // 2 + 1))
    shapes = [fit(emitted, with_batches(emitted, each, 2)) for each in wanted]
    light = [shape for shape in shapes if _rows(emitted, shape) <= _MOST_ROWS]
    return tuple(dict.fromkeys((*light[:1], *light[-1:])))


def _rows(emitted: Emitted, shape: Shape) -> int:
    """Rows of all tensors together."""
    sizes = dict(zip(extents(emitted.schedule.gemm), shape, strict=True))
    tensors = emitted.interface.tensors
    return sum(prod(count(x, sizes[plain(x)]) for x in p.indices[:-1]) for p in tensors)


def g2_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Those of C2, larger ones, which take a GPU little time, and many matrices of a batch."""
    shapes = (*c2_shapes(emitted), *(fit(emitted, shape) for shape in _LARGER))
    letters = len(extents(emitted.schedule.gemm))
    if letters > 3:
        many = (*_MANY, *(1 for _ in range(letters - len(_MANY))))
        shapes = (*shapes, fit(emitted, many))
    return shapes
