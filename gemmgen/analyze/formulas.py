"""The textbook formulas of memory traffic, to compare with the counts.

Without tiles every product reads its two factors from global memory: 2MNK.  With tiles of BM x BN
in shared memory a block reads (BM + BN) elements for BM * BN products: MNK(1/BM + 1/BN).  With TM x
TN elements a thread the same holds between shared memory and registers: MNK(1/TM + 1/TN); on
tensor cores, with WM x WN a warp, MNK(1/WM + 1/WN).  Blocks of a cluster share their tiles: of an
operand the cluster reads what a block as large as all of them along the other letter would.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, prod

from gemmgen.analyze.access_counts import Counts, LaunchCounts
from gemmgen.analyze.launch_arguments import Shape
from gemmgen.base.record import record
from gemmgen.ir import clusters, names
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import pipeline_of, tile_of
from gemmgen.ir.names import WORKSPACE
from gemmgen.ir.nodes import Program
from gemmgen.ir.problem import Problem


@record
class Formula:
    """``counted`` elements, the formula ``text``, and its ``value`` at the shape."""

    name: str
    counted: int
    text: str
    value: float

    @property
    def ratio(self) -> float:
        return self.counted / self.value if self.value else 0.0


def formulas_of(
    program: Program, launch: LaunchCounts, shape: Shape, blocks: int
) -> tuple[Formula, ...]:
    """Of the reads of A and B, hop by hop, and of the writes of C: of a launch, and on average of
    one of its ``blocks``, and of a block's step along k."""
    problem = program.problem.written
    operands = (problem.b.name, problem.a.name)
    mnk = products_of(problem)
    what = f"global reads of {problem.a.name} and {problem.b.name}"
    products = float(prod(shape))
    reads = total(launch, operands, write=False).elements
    naive = Formula(what, reads, times(2, mnk), 2 * products)
    found = [naive]
    sharing = [_sharing(program, operand) for operand in operands]
    if any(value > 1 for _, value in sharing):
        found.append(_formula(what, reads, mnk, products, sharing))
    tiles = {name: tile.name for name in operands if (tile := tile_of(program.main, name))}
    if len(tiles) == len(operands):
        found.append(_of_block(program, what, reads / blocks, shape[2]))
    if tiles and not ATOMS[program.main.spread.atom].in_place:
        counted = total(launch, tiles.values(), write=False).elements
        sharing = [_sharing(program, name, shared=False) for name in tiles]
        found.append(_formula("shared reads", counted, mnk, products, sharing))
        found += _of_step(program, counted / blocks, shape[2], sharing)
    found += _parts(program, launch, shape)
    writes = total(launch, (problem.c.name,), write=True).elements
    elements = float(shape[0] * shape[1] * prod(shape[3:]))
    text = elements_of(problem)
    return (*found, Formula(f"global writes of {problem.c.name}", writes, text, elements))


def _of_block(program: Program, what: str, counted: float, depth: int) -> Formula:
    """``K(BM + BN)``; of blocks that share a tile each has a part of K, and of blocks of a cluster
    each asks for its share of a tile."""
    problem, work = program.problem.written, program.main.work
    (rows, m), (columns, n) = (
        _share(program, letter, other)
        for letter, other in ((problem.m, problem.n), (problem.n, problem.m))
    )
    share = f"/{work.parts}" if work.parts > 1 else ""
    text = f"{problem.extent(problem.k)}{share}({rows} + {columns})"
    return Formula(f"{what}, a block", round(counted), text, depth / work.parts * (m + n))


def _share(program: Program, letter: str, other: str) -> tuple[str, float]:
    """A block's extent along ``letter``, or its share of the tiles of a cluster, by name."""
    name, work = names.block(letter).name, program.main.work
    blocks = clusters.along(work, other)
    if blocks > 1:
        return f"{name}/{names.cluster(other).name}", work.size(letter) / blocks
    return name, work.size(letter)


def _of_step(
    program: Program, counted: float, depth: int, sharing: list[tuple[str, int]]
) -> Iterable[Formula]:
    """``2*BM*BN*BK`` where each multiply-add reads its factors, and with elements in registers
    ``BM*BN*BK(1/TM + 1/TN)``: of each block, whenever it goes on along k."""
    pipeline, problem, work = pipeline_of(program.main), program.problem.written, program.main.work
    if pipeline is None:
        return
    letters = problem.m, problem.n, problem.k
    tile = "*".join(names.block(letter).name for letter in letters)
    products = float(work.size(problem.m) * work.size(problem.n) * pipeline.step)
    steps = ceil(depth / pipeline.step) / work.parts
    what, found = "shared reads, a block and step", round(counted / steps)
    count = len(sharing)
    yield Formula(what, found, f"{count}*{tile}" if count > 1 else tile, count * products)
    if any(value > 1 for _, value in sharing):
        yield _formula(what, found, tile, products, sharing)


def elements_of(problem: Problem) -> str:
    """``MN``, the elements of C; with batches ``size_b*MN``."""
    return _extents(problem, problem.m, problem.n)


def products_of(problem: Problem) -> str:
    """``MNK``; with batches ``size_b*MNK``."""
    return _extents(problem, problem.m, problem.n, problem.k)


def times(number: int, products: str) -> str:
    """``2MNK``, ``2*size_b*MNK``."""
    return f"{number}*{products}" if "*" in products else f"{number}{products}"


def _extents(problem: Problem, *letters: str) -> str:
    """The extents of ``letters``, and of the batches: ``MN``, ``size_b*MN``, ``ROW*COL``."""
    matrix = [problem.extent(letter) for letter in letters]
    sign = "" if all(len(name) == 1 for name in matrix) else "*"
    return "*".join((*(problem.extent(letter) for letter in problem.batch), sign.join(matrix)))


def _parts(program: Program, launch: LaunchCounts, shape: Shape) -> Iterable[Formula]:
    """Of the accumulators that blocks hand over which share a tile: each part's, and each
    group's."""
    work = program.main.work
    if work.parts == 1:
        return
    problem = program.problem.written
    results = elements_of(problem)
    elements = float(shape[0] * shape[1] * prod(shape[3:]))
    for write in (True, False):
        many, more = work.parts, 0 if work.groups == 1 else work.groups
        if work.reduce == "atomic":
            many, more = (work.parts, 1) if write else (1, 0)  # zeros are put back
        text = f"{results}({many} + {more})" if more else f"{results} * {many}"
        counted = total(launch, (WORKSPACE.name,), write=write).elements
        name = f"workspace {'writes' if write else 'reads'}"
        yield Formula(name, counted, text, elements * (many + more))


def total(launch: LaunchCounts, buffers: Iterable[str], *, write: bool) -> Counts:
    """The counts of all sites of these buffers, in one direction."""
    wanted = tuple(buffers)
    found = (c for site, c in launch.items() if site.buffer in wanted and site.write == write)
    return sum(found, Counts())


def _sharing(program: Program, operand: str, *, shared: bool = True) -> tuple[str, int]:
    """For how many products an element is read once: the extent, by its name, of the tile, or the
    tiles of a cluster, that share it, along the letter that the operand does not have."""
    problem, kernel = program.problem.written, program.main
    letter = problem.n if operand == problem.a.name else problem.m
    if shared and tile_of(kernel, operand):
        name, blocks = names.block(letter).name, clusters.along(kernel.work, letter)
        if blocks > 1:
            name = f"({name}*{names.cluster(letter).name})"
        return name, kernel.work.size(letter) * blocks
    axis = kernel.spread.axis(letter)
    if kernel.spread.collective:
        return names.warp(letter).name, axis.extent // axis.warps
    return names.registers(letter).name, axis.registers


def _formula(
    name: str, counted: int, mnk: str, products: float, sharing: list[tuple[str, int]]
) -> Formula:
    shares = [f"1/{extent}" if value > 1 else "1" for extent, value in sharing]
    alone = all(term == "1" for term in shares)
    text = times(len(shares), mnk) if alone else f"{mnk}({' + '.join(shares)})"
    return Formula(name, counted, text, products * sum(1 / value for _, value in sharing))
