"""The rules of a well-formed declared program, one function each: what is broken, in words.

``verify`` has them in its tables.  Those about names and shapes come first; the others look names
and extents up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from gemmgen.ir.dtypes import widths
from gemmgen.ir.edit import wide_access
from gemmgen.ir.expr import Element, Expr, Var, walk
from gemmgen.ir.facts import divides
from gemmgen.ir.nodes import (
    Buffer,
    Contract,
    Copy,
    Init,
    Kernel,
    Loop,
    Map,
    Pipeline,
    Program,
    Space,
)

MOST_BLOCKS = 32

Operation = Init | Copy | Contract | Map


def names_are_unique(program: Program, kernel: Kernel) -> Iterator[str]:
    for name, count in Counter(buffer.name for buffer in kernel.buffers).items():
        if count > 1:
            yield f"buffer {name} is declared {count} times"
    if sum(other.name == kernel.name for other in program.kernels) > 1:
        yield "another kernel has the same name"


def used_buffers_are_declared(program: Program, kernel: Kernel) -> Iterator[str]:
    declared = {buffer.name for buffer in kernel.buffers}
    for operation, _ in _operations(kernel):
        for name in sorted((_read(operation) | _written(operation)) - declared):
            yield f"{_label(operation)} uses {name}, which is not declared"
    if "acc" not in declared:
        yield "there is no accumulator acc"


def declared_buffers_are_used(program: Program, kernel: Kernel) -> Iterator[str]:
    operations = [operation for operation, _ in _operations(kernel)]
    read = {name for operation in operations for name in _read(operation)}
    written = {name for operation in operations for name in _written(operation)}
    for buffer in kernel.buffers:
        used = buffer.name in read | written
        if not used or (buffer.space is not Space.GLOBAL and buffer.name not in read & written):
            yield f"buffer {buffer.name} is never {'written' if buffer.name in read else 'read'}"


def extents_are_those_of_the_space(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        for letter, size in buffer.shape:
            if (size is None) != (buffer.space is Space.GLOBAL):
                yield f"buffer {buffer.name}: extent {letter}={size} in {buffer.space.value} memory"
            if size is not None and size < 1:
                yield f"buffer {buffer.name}: extent {letter}={size} is not positive"


def spreads_cover_register_tiles(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        if (buffer.spread is None) != (buffer.space is not Space.REGISTER):
            yield f"buffer {buffer.name}: register buffers have a spread, others have none"
        elif buffer.spread is not None:
            for axis in buffer.spread.axes:
                if min(axis.warps, axis.pieces, axis.lanes, axis.width) < 1:
                    yield f"buffer {buffer.name}: axis {axis.letter} has a factor below 1"
            extents = {axis.letter: axis.extent for axis in buffer.spread.axes}
            if extents != dict(buffer.shape):
                yield f"buffer {buffer.name}: spread over {extents}, shape {dict(buffer.shape)}"


def work_tiles_the_output(program: Program, kernel: Kernel) -> Iterator[str]:
    work, problem = kernel.work, program.problem
    if dict(work.tile).keys() != {problem.m, problem.n}:
        yield f"work tiles {[letter for letter, _ in work.tile]}, not {[problem.m, problem.n]}"
    if dict(work.tile) != dict(kernel.buffer("acc").shape):
        yield f"work tile {dict(work.tile)} is not acc's, {dict(kernel.buffer('acc').shape)}"
    if work.batch != problem.batch:
        yield f"work numbers matrices by {list(work.batch)}, not {list(problem.batch)}"
    if work.raster < 1:
        yield f"work raster={work.raster} is below 1"
    if work.parts < 1:
        yield f"work parts={work.parts} is below 1"
    if work.parts > 1 and not any(isinstance(s, Pipeline) for s in kernel.body):
        yield f"work parts={work.parts} of a contraction without steps"
    if work.groups < 1 or work.parts % work.groups or (work.groups > 1) & (work.reduce == "atomic"):
        yield f"work groups={work.groups} of parts={work.parts} reduce={work.reduce}"
    if kernel.spread.x not in (problem.m, problem.n):
        yield f"threads run along {kernel.spread.x}, which is no letter of {problem.c.name}"


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
    """Only tiles that are loaded ahead leave the first one to a place of its own; and none is read
    from the middle of a wide access."""
    letter = pipeline.letter
    if kernel.work.parts > 1 or kernel.spread.k_layout is not None:
        yield f"pipeline {letter}: residue=first of shared terms"
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


def global_buffers_are_the_problems(program: Program, kernel: Kernel) -> Iterator[str]:
    problem = program.problem
    matrices = (problem.a, problem.b, problem.c)
    tensors = {t.name: problem.matrix(t.letters) for t in matrices}
    for buffer in kernel.buffers:
        if buffer.space is Space.GLOBAL:
            letters = tensors.get(buffer.name, buffer.letters)
            if buffer.letters != letters or len(letters) != 2:
                yield f"buffer {buffer.name}{buffer.letters} is not {buffer.name}{letters}"


def pads_and_stages_have_a_place(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        pad, stages = buffer.pad, buffer.stages
        fragment = buffer.space is Space.REGISTER and buffer.name != "acc"
        if stages < 1 or pad < 0:
            yield f"buffer {buffer.name}: stages={stages} pad={pad}"
        if pad and buffer.space is not Space.SHARED:
            yield f"buffer {buffer.name}: a pad in {buffer.space.value} memory"
        if stages > 1 and not (buffer.space is Space.SHARED or fragment):
            yield f"buffer {buffer.name}: stages in {buffer.space.value} memory"


def swizzles_permute_rows(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        swizzle = buffer.swizzle
        if swizzle is None:
            continue
        if buffer.space is not Space.SHARED or buffer.pad or len(buffer.letters) != 2:
            yield f"buffer {buffer.name}: a swizzle of {buffer.space.value} memory or padded rows"
            continue
        sizes = (swizzle.by, swizzle.every, swizzle.chunk)
        row = buffer.extent(buffer.letters[-1])
        if swizzle.by < 2 or any(size < 1 or size & (size - 1) for size in sizes):
            yield f"buffer {buffer.name}: a swizzle of {sizes}"
        elif row % swizzle.period:
            yield f"buffer {buffer.name}: a swizzle of {swizzle.period} in rows of {row}"
        elif swizzle.chunk % wide_access(kernel, buffer):
            yield f"buffer {buffer.name}: a swizzle of chunks of {swizzle.chunk}"


def fragments_are_distributed_like_the_accumulator(
    program: Program, kernel: Kernel
) -> Iterator[str]:
    axes = {axis.letter: axis for axis in kernel.spread.axes}
    for buffer in kernel.buffers:
        for axis in buffer.spread.axes if buffer.spread else ():
            along_k = axis.letter == program.problem.k
            wanted = (kernel.spread.k_layout or axis) if along_k else axes.get(axis.letter)
            if axis != wanted:
                yield f"buffer {buffer.name}: axis {axis.letter} is not distributed like acc's"
        if buffer.spread and buffer.spread.x != kernel.spread.x:
            yield f"buffer {buffer.name}: x={buffer.spread.x} is not acc's {kernel.spread.x}"
        if buffer.spread and buffer.spread.atom != kernel.spread.atom:
            yield f"buffer {buffer.name}: atom={buffer.spread.atom}, acc's {kernel.spread.atom}"


def one_contraction_in_the_first_kernel(program: Program, kernel: Kernel) -> Iterator[str]:
    count = sum(isinstance(operation, Contract) for operation, _ in _operations(kernel))
    wanted = int(kernel is program.main)
    if count != wanted:
        yield f"{count} contractions, not {wanted}"
    first = next((o for o, _ in _operations(kernel) if isinstance(o, Contract | Init)), None)
    if isinstance(first, Contract):
        yield f"{_label(first)} comes before {first.acc} is set to zero"


def the_contraction_sums_over_k(program: Program, kernel: Kernel) -> Iterator[str]:
    problem = program.problem
    for operation, loops in _operations(kernel):
        if not isinstance(operation, Contract):
            continue
        if operation.acc != "acc" or problem.k not in loops:
            yield f"{_label(operation)} does not sum into acc over {problem.k}"
        for name, free in ((operation.a, problem.m), (operation.b, problem.n)):
            if set(kernel.buffer(name).letters) - {problem.k} != {free}:
                yield f"{_label(operation)}: {name} has other letters than {free}"


def copies_keep_letters(program: Program, kernel: Kernel) -> Iterator[str]:
    for operation, loops in _operations(kernel):
        if isinstance(operation, Copy):
            src, dst = (set(kernel.buffer(n).letters) for n in (operation.src, operation.dst))
            if not dst <= src <= dst | set(loops):
                yield f"{_label(operation)}: {sorted(src)} to {sorted(dst)} inside {list(loops)}"


def copies_go_inward(program: Program, kernel: Kernel) -> Iterator[str]:
    inward = [Space.GLOBAL, Space.SHARED, Space.REGISTER]
    for operation, _ in _operations(kernel):
        if isinstance(operation, Copy):
            src, dst = (kernel.buffer(n).space for n in (operation.src, operation.dst))
            if inward.index(src) >= inward.index(dst):
                yield f"{_label(operation)} goes from {src.value} to {dst.value} memory"
        if isinstance(operation, Map) and kernel.buffer(operation.dst).space is not Space.GLOBAL:
            yield f"{_label(operation)} does not write global memory"


def pipelines_split_k(program: Program, kernel: Kernel) -> Iterator[str]:
    for pipeline in (s for s in kernel.body if isinstance(s, Pipeline)):
        label = f"pipeline {pipeline.letter} by {pipeline.step}"
        if pipeline.letter != program.problem.k or pipeline.step < 1:
            yield f"{label}: not over {program.problem.k}, or no step"
        for loop in pipeline.consume:
            if loop.letter != pipeline.letter:
                yield f"{label}: loop {loop.letter} inside it"
        sizes = dict(kernel.work.tile) | {pipeline.letter: pipeline.step}
        for copy in pipeline.produce:
            buffer = kernel.buffer(copy.dst)
            if buffer.space is not Space.SHARED and pipeline.letter not in buffer.letters:
                yield f"{label}: {_label(copy)} is no tile of shared memory or of lanes"
            elif any(size != sizes.get(letter) for letter, size in buffer.shape):
                yield f"{label}: {copy.dst}{dict(buffer.shape)} is not a tile of {sizes}"


def shared_tiles_are_produced_once(program: Program, kernel: Kernel) -> Iterator[str]:
    produced = Counter(
        copy.dst for s in kernel.body if isinstance(s, Pipeline) for copy in s.produce
    )
    produced.update(s.through for s in kernel.body if isinstance(s, Map) and s.through)
    for buffer in kernel.buffers:
        if buffer.space is Space.SHARED and produced[buffer.name] != 1:
            yield f"buffer {buffer.name} is produced {produced[buffer.name]} times"


def widths_divide_what_they_move(program: Program, kernel: Kernel) -> Iterator[str]:
    for operation, _ in _operations(kernel):
        if not isinstance(operation, Copy | Map) or operation.width == 1:
            continue
        width, label = operation.width, _label(operation)
        # The temporary matrix of an unfused epilogue is written as wide as C will be, or less.
        c = program.problem.c.dtype
        allowed = widths(c if isinstance(operation, Map) else kernel.buffer(operation.src).dtype)
        if width not in allowed:
            yield f"{label}: width={width} is not one of {(1, *allowed)}"
        elif isinstance(operation, Map):
            yield from _runs(label, kernel.buffer("acc"), kernel.buffer(operation.dst), width)
        else:
            src, dst = kernel.buffer(operation.src), kernel.buffer(operation.dst)
            yield from _runs(label, dst, src, width)


def _runs(label: str, tile: Buffer, memory: Buffer, width: int) -> Iterator[str]:
    """Neighbours in ``memory`` are neighbours in ``tile``, in runs of a multiple of ``width``."""
    letter = memory.letters[-1]
    if letter not in tile.letters:
        yield f"{label}: width={width} along {letter}, which {tile.name} does not have"
        return
    run = tile.spread.axis(letter).width if tile.spread else tile.extent(letter)
    if run % width:
        yield f"{label}: width={width} does not divide {tile.name}'s runs of {run} along {letter}"


def wide_rows_stay_aligned(program: Program, kernel: Kernel) -> Iterator[str]:
    for operation, _ in _operations(kernel):
        if not isinstance(operation, Copy):
            continue
        src, dst = kernel.buffer(operation.src), kernel.buffer(operation.dst)
        same = src.letters[-1] == dst.letters[-1]
        for tile in (src, *((dst,) if same else ())):
            row = tile.pad + (dict(tile.shape)[tile.letters[-1]] or 0)
            if tile.space is Space.SHARED and row % operation.width:
                yield f"{_label(operation)}: width={operation.width}, rows of {tile.name} of {row}"


def types_change_on_the_way_to_a_fragment(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        if buffer.name == "acc" and buffer.dtype != program.problem.accumulate:
            yield f"buffer acc: {buffer.dtype}, sums are {program.problem.accumulate}"
    for operation, _ in _operations(kernel):
        if isinstance(operation, Copy):
            src, dst = kernel.buffer(operation.src), kernel.buffer(operation.dst)
            if dst.space is not Space.REGISTER and src.dtype != dst.dtype:
                yield f"{_label(operation)}: a copy of {src.dtype} is {dst.dtype}"


def expressions_know_their_names(program: Program, kernel: Kernel) -> Iterator[str]:
    problem = program.problem
    known = {"acc", *problem.c.letters} | {e.name for e in _of(problem.epilogue, Var)}
    elements = set(_of(problem.epilogue, Element))
    for operation, _ in _operations(kernel):
        if isinstance(operation, Map):
            for name in sorted({e.name for e in _of(operation.value, Var)} - known):
                yield f"{_label(operation)} uses {name}, which the problem does not"
            for element in set(_of(operation.value, Element)) - elements:
                yield f"{_label(operation)} reads {element.buffer}, which the problem does not"


def _operations(kernel: Kernel) -> Iterator[tuple[Operation, tuple[str, ...]]]:
    """Every operation of ``kernel`` in order, with the letters of the loops around it."""
    for statement in kernel.body:
        match statement:
            case Loop():
                yield from _in_loop(statement)
            case Pipeline():
                yield from ((copy, ()) for copy in statement.produce)
                for loop in statement.consume:
                    yield from _in_loop(loop)
            case _:
                yield statement, ()


def _in_loop(loop: Loop) -> Iterator[tuple[Operation, tuple[str, ...]]]:
    yield from ((operation, (loop.letter,)) for operation in loop.body)


def _read(operation: Operation) -> set[str]:
    """The buffers that an operation reads; an epilogue's further tensors are no buffers."""
    match operation:
        case Init():
            return set()
        case Copy(_, src):
            return {src}
        case Contract(acc, a, b):
            return {acc, a, b}
        case Map(_, value, through=through):
            sums = {e.name for e in _of(value, Var) if e.name == "acc"}
            return {*sums, through} if through else sums


def _written(operation: Operation) -> set[str]:
    match operation:
        case Contract(acc):
            return {acc}
        case Map(dst, through=str(through)):
            return {dst, through}
        case _:
            return {operation.dst}


def _label(operation: Operation) -> str:
    match operation:
        case Init(dst):
            return f"init {dst}"
        case Copy(dst, src):
            return f"{dst} = {src}"
        case Contract(acc, a, b):
            return f"{acc} += {a} * {b}"
        case Map(dst, _):
            return f"{dst} = (expression)"


Kind = TypeVar("Kind", Var, Element)


def _of(expr: Expr, kind: type[Kind]) -> Iterator[Kind]:
    return (part for part in walk(expr) if isinstance(part, kind))
