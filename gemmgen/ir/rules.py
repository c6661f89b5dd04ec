"""The rules of a kernel: its names, its work and its one contraction.

A rule says in words what is broken; ``validate`` has them all in its tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gemmgen.ir.assumptions import divides
from gemmgen.ir.buffers import Role, Space
from gemmgen.ir.clusters import MOST_BLOCKS as MOST_IN_CLUSTER
from gemmgen.ir.clusters import blocks_of
from gemmgen.ir.edit import promotion_of
from gemmgen.ir.expr import Element, Var
from gemmgen.ir.nodes import Contract, Init, Kernel, Map, Pipeline, Program
from gemmgen.ir.operations import line_of, operations_of, reads, subtrees_of, writes

MOST_BLOCKS = 32


def names_are_unique(program: Program, kernel: Kernel) -> Iterator[str]:
    for name, count in Counter(buffer.name for buffer in kernel.buffers).items():
        if count > 1:
            yield f"buffer {name} is declared {count} times"
    if sum(other.name == kernel.name for other in program.kernels) > 1:
        yield "another kernel has the same name"


def used_buffers_are_declared(program: Program, kernel: Kernel) -> Iterator[str]:
    declared = {buffer.name for buffer in kernel.buffers}
    for operation, _ in operations_of(kernel):
        for name in sorted((reads(operation) | writes(operation)) - declared):
            yield f"{line_of(operation)} uses {name}, which is not declared"
    count = sum(buffer.role is Role.ACCUMULATOR for buffer in kernel.buffers)
    if count != 1:
        yield f"there are {count} accumulators"


def declared_buffers_are_used(program: Program, kernel: Kernel) -> Iterator[str]:
    operations = [operation for operation, _ in operations_of(kernel)]
    read = {name for operation in operations for name in reads(operation)}
    read |= {split.src for split in program.splits}
    written = {name for operation in operations for name in writes(operation)}
    for buffer in kernel.buffers:
        used = buffer.name in read | written
        if not used or (buffer.space is not Space.GLOBAL and buffer.name not in read & written):
            yield f"buffer {buffer.name} is never {'written' if buffer.name in read else 'read'}"


def work_tiles_the_output(program: Program, kernel: Kernel) -> Iterator[str]:
    work, problem = kernel.work, program.problem
    if dict(work.tile).keys() != {problem.m, problem.n}:
        yield f"work tiles {[letter for letter, _ in work.tile]}, not {[problem.m, problem.n]}"
    if dict(work.tile) != dict(kernel.accumulator.shape):
        yield f"work tile {dict(work.tile)} is not acc's, {dict(kernel.accumulator.shape)}"
    if work.batch != problem.batch:
        yield f"work numbers matrices by {list(work.batch)}, not {list(problem.batch)}"
    if work.raster < 1:
        yield f"work raster={work.raster} is below 1"
    if work.order == "hilbert" and (work.raster < 2 or work.raster & (work.raster - 1)):
        yield f"work order=hilbert of raster={work.raster}, which is not a power of two above 1"
    if work.parts < 1:
        yield f"work parts={work.parts} is below 1"
    if work.parts > 1 and not any(isinstance(s, Pipeline) for s in kernel.body):
        yield f"work parts={work.parts} of a contraction without steps"
    if work.groups < 1 or work.parts % work.groups or (work.groups > 1) & (work.reduce == "atomic"):
        yield f"work groups={work.groups} of parts={work.parts} reduce={work.reduce}"
    yield from _clusters_are_of_blocks_with_tiles(program, kernel)
    if kernel.spread.x not in (problem.m, problem.n):
        yield f"threads run along {kernel.spread.x}, which is not a letter of {problem.c.name}"


def _clusters_are_of_blocks_with_tiles(program: Program, kernel: Kernel) -> Iterator[str]:
    work, problem = kernel.work, program.problem
    if not work.cluster:
        return
    sides = dict(work.cluster)
    if tuple(sides) != (problem.m, problem.n) or min(sides.values()) < 1:
        yield f"work cluster={sides}, not of {[problem.m, problem.n]}"
    if not 1 < blocks_of(work) <= MOST_IN_CLUSTER:
        yield f"work cluster={sides} of {blocks_of(work)} blocks"
    if not kernel.producers.warpgroups:
        yield f"work cluster={sides} of blocks whose tiles no producer copies alone"


def bounds_and_loops_are_whole(program: Program, kernel: Kernel) -> Iterator[str]:
    if not 0 <= kernel.bounds.blocks <= MOST_BLOCKS:
        yield f"bounds blocks={kernel.bounds.blocks}"
    for pipeline in (s for s in kernel.body if isinstance(s, Pipeline)):
        if pipeline.unroll < 1:
            yield f"pipeline {pipeline.letter}: unroll={pipeline.unroll}"
        if pipeline.residue == "first":
            yield from _first_residue_is_legal(program, kernel, pipeline)
        for loop in pipeline.consume:
            if loop.unroll < 0 or (loop.unroll and pipeline.step % loop.unroll):
                yield f"loop {loop.letter}: unroll={loop.unroll} of {pipeline.step} steps"


def _first_residue_is_legal(program: Program, kernel: Kernel, pipeline: Pipeline) -> Iterator[str]:
    """Only prefetched tiles allow the first one to be peeled; and no tile may begin in the middle
    of a wide access."""
    letter = pipeline.letter
    if kernel.work.parts > 1 or kernel.spread.k_layout is not None:
        yield f"pipeline {letter}: residue=first of a split k"
    inputs = {program.problem.a.name, program.problem.b.name}
    if inputs - {c.src for c in pipeline.produce}:
        yield f"pipeline {letter}: residue=first of an operand without tiles"
    for copy in pipeline.produce:
        if kernel.buffer(copy.dst).stages == 1:
            yield f"pipeline {letter}: residue=first of {copy.dst}, which has one stage"
        if kernel.buffer(copy.src).letters[-1] == letter and not divides(
            program, program.problem.extent(letter), copy.width
        ):
            yield f"pipeline {letter}: residue=first of {copy.src}, {copy.width} wide along it"


def one_contraction_in_the_first_kernel(program: Program, kernel: Kernel) -> Iterator[str]:
    count = sum(isinstance(operation, Contract) for operation, _ in operations_of(kernel))
    wanted = int(kernel is program.main)
    if count != wanted:
        yield f"{count} contractions, not {wanted}"
    first = next((o for o, _ in operations_of(kernel) if isinstance(o, Contract | Init)), None)
    if isinstance(first, Contract):
        yield f"{line_of(first)} comes before {first.acc} is set to zero"


def the_contraction_sums_over_k(program: Program, kernel: Kernel) -> Iterator[str]:
    problem = program.problem
    for operation, loops in operations_of(kernel):
        if not isinstance(operation, Contract):
            continue
        promotion = promotion_of(kernel)
        accumulators = promotion.part if promotion else kernel.accumulator.name
        if operation.acc != accumulators or problem.k not in loops:
            yield f"{line_of(operation)} does not sum into {accumulators} over {problem.k}"
        for name, free in ((operation.a, problem.m), (operation.b, problem.n)):
            if set(kernel.buffer(name).letters) - {problem.k} != {free}:
                yield f"{line_of(operation)}: {name} has other letters than {free}"


def expressions_know_their_names(program: Program, kernel: Kernel) -> Iterator[str]:
    problem = program.problem
    known = {"acc", *problem.c.letters} | {e.name for e in subtrees_of(problem.epilogue, Var)}
    elements = set(subtrees_of(problem.epilogue, Element))
    for operation, _ in operations_of(kernel):
        if isinstance(operation, Map):
            for name in sorted({e.name for e in subtrees_of(operation.value, Var)} - known):
                yield f"{line_of(operation)} uses {name}, which the problem does not"
            for element in set(subtrees_of(operation.value, Element)) - elements:
                yield f"{line_of(operation)} reads {element.buffer}, which the problem does not"
