"""Shapes that a kernel can be called with: its assumptions and requirements hold for them."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.errors import UsageError
from gemmgen.calling.dimensions import constraints, solve
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.launch_shape import Shape, spelled
from gemmgen.ir.nodes import Program
from gemmgen.ir.requirement import Requirement
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import batches, extents

_MOST_DEPTH = 1024
"""The K above which the last parts of split-K stay empty."""
_K_STEP = 8
"""The k tile of a kernel that has none."""


def with_batches(emitted: Emitted, matrix: Shape, count: int) -> Shape:
    """``matrix`` (M, N, K) with ``count`` matrices along the innermost batch letter, 1 along
    others."""
    letters = len(batches(emitted.schedule.gemm))
    return (*matrix, *((*(1 for _ in range(letters - 1)), count) if letters else ()))


def tile_of(program: Program) -> tuple[int, int, int, int]:
    """The block's tile along the letters of the first and the second factor and k, and the most
    stages of one operand."""
    kernel, problem = program.main, program.problem.written
    sizes = dict(kernel.work.tile)
    pipeline = pipeline_of(kernel)
    stages = max(buffer.stages for buffer in kernel.buffers)
    return sizes[problem.m], sizes[problem.n], pipeline.step if pipeline else _K_STEP, stages


def ragged_depth(program: Program, own: int, rest: int) -> int:
    """The K for which the last part of split-K has ``own`` whole steps and one of ``rest``."""
    _, _, k, _ = tile_of(program)
    return ((own + 2) * (program.main.work.parts - 1) + own) * k + rest


def shallow_depth(program: Program) -> int:
    """A K of few terms that leaves no part of split-K empty, unless the parts are very many."""
    _, _, k, _ = tile_of(program)
    return min(k * (program.main.work.parts - 1), _MOST_DEPTH) + 3


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
