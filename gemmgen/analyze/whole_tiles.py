"""The smallest shape at which block 0 has whole tiles, so that no guard is false."""

from __future__ import annotations

from math import lcm

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.ir.edit import copies, pipeline_of
from gemmgen.ir.launch_shape import Shape


def k_step(kernel: AnalyzedKernel) -> int:
    """Elements along k of one step of the main loop; 1 without tiles of k."""
    pipeline = pipeline_of(kernel.program.main)
    return pipeline.step if pipeline else 1


def stages_of(kernel: AnalyzedKernel) -> int:
    """The most stages that a shared tile has."""
    main = kernel.program.main
    return max((main.buffer(name).stages for name in staged_tiles(kernel)), default=1)


def staged_tiles(kernel: AnalyzedKernel) -> tuple[str, ...]:
    """The shared tiles of operands, in the order in which they are filled."""
    pipeline = pipeline_of(kernel.program.main)
    arrays = {array.name for array in kernel.lowered.shared}
    return tuple(c.dst for c in (pipeline.produce if pipeline else ()) if c.dst in arrays)


def boxed_tiles(kernel: AnalyzedKernel) -> tuple[str, ...]:
    """Those that TMA fills."""
    staged = staged_tiles(kernel)
    return tuple(c.dst for c in copies(kernel.program.main) if c.mode == "tma" and c.dst in staged)


def whole_tiles(kernel: AnalyzedKernel, steps: int) -> Shape:
    """One tile of C and at least ``steps`` steps along k for each block that shares it, enlarged to
    what the schedule assumes of the extents; batches of one matrix."""
    problem, work = kernel.program.problem, kernel.program.main.work
    sizes = {problem.extent(letter): work.size(letter) for letter in (problem.m, problem.n)}
    sizes[problem.extent(problem.k)] = k_step(kernel) * steps * work.parts
    facts = kernel.program.facts
    for _ in facts:
        for fact in facts:
            if fact.name in sizes and fact.divisor is not None:
                sizes[fact.name] = lcm(sizes[fact.name], fact.divisor)
            if fact.name in sizes and fact.equals in sizes:
                same = lcm(sizes[fact.name], sizes[fact.equals])
                sizes[fact.name] = sizes[fact.equals] = same
    return tuple(sizes.get(problem.extent(letter), 1) for letter in problem.letters)
