"""Shapes that a kernel can be called with: its assumptions and requirements hold for them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from gemmgen.base.errors import UsageError
from gemmgen.calling.dimensions import can_be_far, constraints, solve
from gemmgen.calling.launches import Shape, spelled
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.interface import Requirement
from gemmgen.ir.nodes import Program
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import batches, extents

_MOST_ROWS = 4000
"""Rows of all tensors of a far call: the CPU run sends each one separately."""
_MOST_DEPTH = 1024
"""The K above which the last parts of split-K stay empty."""
_K_STEP = 8
"""The k tile of a kernel that has none."""


def default_shapes(emitted: Emitted) -> tuple[Shape, ...]:
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


def far_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Whole tiles and ragged ones along the columns of C and along k, and less than one tile, with
    more rows than columns; empty if neither a leading dimension nor a stride can be chosen."""
    if not can_be_far(emitted.interface):
        return ()
    m, n, k, _ = tile_of(emitted.program)
    depth = ragged_depth(emitted.program, 2)
    large = ((m, n + 3, depth), (m // 2 + 1, n + 3, k + 3), (5, n + 3, 5))
    wanted = (*large, (9, 5, k // 2 + 1))
    shapes = [fit(emitted, with_batches(emitted, each, 2)) for each in wanted]
    light = [shape for shape in shapes if _rows(emitted, shape) <= _MOST_ROWS]
    return tuple(dict.fromkeys((*light[:1], *light[-1:])))


def _rows(emitted: Emitted, shape: Shape) -> int:
    """Rows of all tensors together."""
    sizes = dict(zip(extents(emitted.schedule.gemm), shape, strict=True))
    tensors = (p for p in emitted.interface.params if p.kind == "tensor")
    return sum(prod(sizes[letter] for letter in p.indices[:-1]) for p in tensors)


def with_batches(emitted: Emitted, matrix: Shape, count: int) -> Shape:
    """``matrix`` (M, N, K) with ``count`` matrices along the innermost batch letter, 1 along
    others."""
    letters = len(batches(emitted.schedule.gemm))
    return (*matrix, *((*(1 for _ in range(letters - 1)), count) if letters else ()))


def tile_of(program: Program) -> tuple[int, int, int, int]:
    """The block's tile along m, n and k, and the most stages of one operand."""
    kernel, problem = program.main, program.problem
    sizes = dict(kernel.work.tile)
    pipeline = pipeline_of(kernel)
    stages = max(buffer.stages for buffer in kernel.buffers)
    return sizes[problem.m], sizes[problem.n], pipeline.step if pipeline else _K_STEP, stages


def ragged_depth(program: Program, own: int) -> int:
    """The K for which the last part of split-K has ``own`` whole steps and a partial one."""
    _, _, k, _ = tile_of(program)
    return ((own + 2) * (program.main.work.parts - 1) + own) * k + k // 2 + 1


def ring_of(program: Program) -> int:
    """The K that uses every stage in every part."""
    _, _, k, stages = tile_of(program)
    parts = program.main.work.parts
    return min(k * (stages + 1) * parts, max(k * (stages + 1), _MOST_DEPTH))


def fit(emitted: Emitted, wanted: Shape) -> Shape:
    """``wanted``, increased if an assumption or a requirement needs it.

    Batches that it leaves out are 2, or 3 and 2; extents that it has too many of are ignored.
    """
    names = tuple(extents(emitted.schedule.gemm).values())
    left_out = max(len(names) - len(wanted), 0)
    shape = (*wanted[: len(names)], *((2,) if left_out == 1 else (3, 2) * left_out)[:left_out])
    values = solve(emitted.interface, dict(zip(names, shape, strict=True)), 0)
    return tuple(values[name] for name in names)


def exactly(emitted: Emitted, shape: Shape) -> Shape:
    """``shape``, or a ``UsageError`` that says which assumption excludes it."""
    wanted = dict(zip(extents(emitted.schedule.gemm).values(), shape, strict=True))
    values = solve(emitted.interface, wanted, 0)
    if any(values[name] != size for name, size in wanted.items()):
        broken = ", ".join(r.text() for r in constraints(emitted.interface) if _breaks(r, wanted))
        why = broken or "its assumptions taken together"
        refused = f"{emitted.name} can't be called with {spelled(shape)}"
        raise UsageError(f"{refused}: it requires {why}")
    return shape


def _breaks(rule: Requirement, sizes: Mapping[str, int]) -> bool:
    """Whether ``rule`` concerns only extents, and is violated."""
    try:
        return not rule.holds(sizes)
    except KeyError:
        return False
