"""Shapes that a kernel can be called with: its assumptions and requirements hold for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gemmgen.base.errors import UsageError
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.interface import Aligned, AtLeast, AtMost, Equal, Interface, MultipleOf, Requirement
from gemmgen.ir.nodes import Program
from gemmgen.ir.problem import Tensor
from gemmgen.passes.build import problem_of
from gemmgen.pipeline import Emitted
from gemmgen.proof.outcome import Shape, spelled
from gemmgen.schedule.model import Assume
from gemmgen.schedule.roles import batches, extents

_ROUNDS = 64
_MOST_TERMS = 1024
"""Beyond which the last parts of a split sum stay empty."""
_K_STEP = 8
"""Stands for the k tile of a kernel that has none."""


def default_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Small, ragged, one beside each tile, past the ring of stages (also where k alone is ragged),
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
        # Of extents without a common divisor a wrong numbering may reach all matrices.
        sizes = ((1,), (3, 2), (2, 2), (1, 2), (3, 1), (1, 1), (2, 1), (2, 3))
        wanted = tuple(
            (*shape, *(batch * count)[:count]) for shape, batch in zip(wanted, sizes, strict=True)
        )
        wanted += ((2, 3, 5, *(0, 2, 2, 2)[:count]),)
    return tuple(dict.fromkeys(fit(emitted, shape) for shape in wanted))


def with_batches(emitted: Emitted, matrix: Shape, count: int) -> Shape:
    """``matrix`` (M, N, K) with ``count`` matrices along the innermost batch letter, 1 along
    others."""
    letters = len(batches(emitted.schedule.gemm))
    return (*matrix, *((*(1 for _ in range(letters - 1)), count) if letters else ()))


def tile_of(program: Program) -> tuple[int, int, int, int]:
    """The block's tile along rows, columns and terms, and the most stages of one."""
    kernel, problem = program.main, program.problem
    sizes = dict(kernel.work.tile)
    pipeline = pipeline_of(kernel)
    stages = max(buffer.layout.stages for buffer in kernel.buffers)
    return sizes[problem.m], sizes[problem.n], pipeline.step if pipeline else _K_STEP, stages


def ragged_terms(program: Program, own: int) -> int:
    """Terms of which the last part of a split sum has ``own`` whole steps and a ragged one."""
    _, _, k, _ = tile_of(program)
    return ((own + 2) * (program.main.work.parts - 1) + own) * k + k // 2 + 1


def ring_of(program: Program) -> int:
    """Terms that bring every stage of every part into use."""
    _, _, k, stages = tile_of(program)
    parts = program.main.work.parts
    return min(k * (stages + 1) * parts, max(k * (stages + 1), _MOST_TERMS))


def fit(emitted: Emitted, wanted: Shape) -> Shape:
    """``wanted``, made larger where an assumption or a requirement asks for it.

    Where it leaves batches out there are 2, or 3 and 2; what it has too many of is not looked at.
    """
    names = tuple(extents(emitted.schedule.gemm).values())
    left_out = max(len(names) - len(wanted), 0)
    shape = (*wanted[: len(names)], *((2,) if left_out == 1 else (3, 2) * left_out)[:left_out])
    values = solve(emitted, dict(zip(names, shape, strict=True)), 0)
    return tuple(values[name] for name in names)


def exactly(emitted: Emitted, shape: Shape) -> Shape:
    """``shape``, or a ``UsageError`` that says which assumption excludes it."""
    wanted = dict(zip(extents(emitted.schedule.gemm).values(), shape, strict=True))
    values = solve(emitted, wanted, 0)
    if any(values[name] != size for name, size in wanted.items()):
        broken = ", ".join(r.text() for r in constraints(emitted) if _breaks(r, wanted))
        why = broken or "its assumptions taken together"
        told = f"{emitted.name} can't be called with {spelled(shape)}"
        raise UsageError(f"{told}: it requires {why}")
    return shape


STEP = 8
"""Elements by which the padding grows from tensor to tensor: wide accesses stay possible."""


def solve(emitted: Emitted, sizes: Mapping[str, int], pad: int) -> dict[str, int]:
    """Extents and leading dimensions that satisfy everything, none less than asked for.

    Rows are ``pad`` elements longer than they need be, and a few more from tensor to tensor, where
    nothing forbids it: leading dimensions that were mixed up then show.
    """
    values = dict(sizes)
    for number, (name, row) in enumerate(_leading(emitted)):
        values[name] = sizes[row] + (pad + STEP * number if pad else 0)
    for assume in emitted.schedule.assumes:
        if assume.equals is not None and assume.name not in sizes:
            values[assume.name] = sizes[assume.equals]
    rules = tuple(rule for rule in constraints(emitted) if rule.name in values)
    broken = [rule for rule in rules if not rule.holds(values)]
    for _ in range(_ROUNDS):
        for rule in broken:
            _mend(rule, values)
        broken = [rule for rule in rules if not rule.holds(values)]
        if not broken:
            return values
    told = ", ".join(rule.text() for rule in broken)
    raise UsageError(f"no shape near {dict(sizes)} satisfies {told}")


def constraints(emitted: Emitted) -> Iterator[Requirement]:
    """The kernel's requirements of numbers, and the schedule's assumptions."""
    required = [r for r in emitted.interface.requirements if not isinstance(r, Aligned)]
    yield from required
    for assume in emitted.schedule.assumes:
        rule = _rule(assume)
        if rule not in required:
            yield rule


def _rule(assume: Assume) -> Requirement:
    if assume.divisor is not None:
        return MultipleOf(assume.name, assume.divisor)
    assert assume.equals is not None
    return Equal(assume.name, assume.equals)


def alignment(interface: Interface, tensor: str) -> int:
    """Elements that a tensor's address must be a multiple of."""
    aligned = (r for r in interface.requirements if isinstance(r, Aligned))
    sizes = {p.name: BYTES[p.dtype] for p in interface.params}
    return max((r.bytes // sizes[tensor] for r in aligned if r.name == tensor), default=1)


def _leading(emitted: Emitted) -> Iterator[tuple[str, str]]:
    """Each leading dimension, and the extent of the rows that it parts."""
    problem = problem_of(emitted.schedule)
    tensors = {t.name: t for t in (problem.a, problem.b, problem.c)}
    for param in emitted.interface.params:
        if param.kind == "tensor" and param.name not in tensors:
            tensors[param.name] = Tensor(param.name, param.indices)
    for tensor in tensors.values():
        pitch = problem.pitch(tensor)
        if pitch is not None:
            yield pitch[1], problem.extent(tensor.contiguous)


def _breaks(rule: Requirement, sizes: Mapping[str, int]) -> bool:
    """Is ``rule`` one of extents alone, and broken?"""
    try:
        return not rule.holds(sizes)
    except KeyError:
        return False


def _mend(rule: Requirement, values: dict[str, int]) -> None:
    """The least that makes ``rule`` hold; what is too large already, stays."""
    value = values[rule.name]
    match rule:
        case AtLeast(name, bound):
            values[name] = max(value, values[bound])
        case MultipleOf(name, divisor):
            values[name] = -(-value // divisor) * divisor
        case Equal(name, other):
            values[name] = values[other] = max(value, values[other])
        case AtMost() | Aligned():
            pass
