"""The rules of copies: where they go, and how wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from gemmgen.ir.blocked_letters import count, plain
from gemmgen.ir.buffers import Buffer, Role, Space, slice_height, slice_of
from gemmgen.ir.dtypes import widths
from gemmgen.ir.edit import copy_outward, stores_vectors
from gemmgen.ir.nodes import Copy, Kernel, Map, Pipeline, Program
from gemmgen.ir.operations import line_of, operations_of


def copies_keep_letters(program: Program, kernel: Kernel) -> Iterator[str]:
    for operation, loops in operations_of(kernel):
        if isinstance(operation, Copy):
            src, dst = (set(kernel.buffer(n).letters) for n in (operation.src, operation.dst))
            if not dst <= src <= dst | set(loops):
                yield f"{line_of(operation)}: {sorted(src)} to {sorted(dst)} inside {list(loops)}"


def hints_are_of_asynchronous_copies(program: Program, kernel: Kernel) -> Iterator[str]:
    for operation, _ in operations_of(kernel):
        if not isinstance(operation, Copy) or operation.mode != "registers":
            continue
        if operation.evict != "normal":
            yield f"{line_of(operation)} has a hint for L2, and goes through registers"


def copies_go_inward_or_take_a_mapped_tile_outward(
    program: Program, kernel: Kernel
) -> Iterator[str]:
    inward = [Space.GLOBAL, Space.SHARED, Space.REGISTER]
    outward = copy_outward(kernel)
    for operation, _ in operations_of(kernel):
        if isinstance(operation, Copy):
            src, dst = (kernel.buffer(n).space for n in (operation.src, operation.dst))
            leaves = operation == outward and (src, dst) == (Space.SHARED, Space.GLOBAL)
            if inward.index(src) >= inward.index(dst) and not leaves:
                yield f"{line_of(operation)} goes from {src.value} to {dst.value} memory"
        if isinstance(operation, Map):
            space = kernel.buffer(operation.dst).space
            if space is not Space.GLOBAL and not (outward and space is Space.SHARED):
                yield f"{line_of(operation)} does not write global memory"


def mapped_tiles_leave_in_slices(program: Program, kernel: Kernel) -> Iterator[str]:
    """A tile of the output has the shape of a slice, whole rows of it are contiguous, and it is
    copied at once."""
    for at, statement in enumerate(kernel.body):
        if not isinstance(statement, Map) or kernel.buffer(statement.dst).space is Space.GLOBAL:
            continue
        tile = kernel.buffer(statement.dst)
        outer, inner = program.problem.matrix(program.problem.c.letters)
        wanted = slice_of(kernel.spread, outer, inner)
        if tile.shape != wanted:
            yield f"buffer {tile.name}{dict(tile.shape)} is not a slice {dict(wanted)}"
        slices = tile.stages // kernel.producers.pingpong
        outward = copy_outward(kernel)
        rows = kernel.spread.axis(outer).registers // slice_height(kernel.spread, outer)
        if not slices or rows % slices:
            yield f"buffer {tile.name}: {tile.stages} stages do not divide a tile's slices"
        if not kernel.spread.has_coordinates:
            yield (
                f"{line_of(statement)}: accumulators that no thread holds alone leave in another "
                "way"
            )
        if kernel.body[at + 1 : at + 2] != (outward,):
            yield f"{line_of(statement)} is not copied outward at once"


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
                yield f"{label}: {line_of(copy)} is not a tile of shared memory or of lanes"
            elif any(size != _extent(letter, sizes) for letter, size in buffer.shape):
                yield f"{label}: {copy.dst}{dict(buffer.shape)} is not a tile of {sizes}"


def _extent(letter: str, sizes: Mapping[str, int]) -> int | None:
    """The extent of a tile along a letter, which may number blocks."""
    size = sizes.get(plain(letter))
    return None if size is None else count(letter, size)


def shared_tiles_are_produced_once(program: Program, kernel: Kernel) -> Iterator[str]:
    produced = Counter(
        copy.dst for s in kernel.body if isinstance(s, Pipeline) for copy in s.produce
    )
    maps = [s for s in kernel.body if isinstance(s, Map)]
    produced.update(s.through for s in maps if s.through)
    produced.update(s.dst for s in maps)
    for buffer in kernel.buffers:
        if buffer.space is Space.SHARED and produced[buffer.name] != 1:
            yield f"buffer {buffer.name} is produced {produced[buffer.name]} times"


def widths_divide_what_they_move(program: Program, kernel: Kernel) -> Iterator[str]:
    for operation, _ in operations_of(kernel):
        if not isinstance(operation, Copy | Map) or operation.width == 1:
            continue
        width, label = operation.width, line_of(operation)
        # The temporary matrix of an unfused epilogue is written as wide as C will be, or less.
        c = program.problem.c.dtype
        leaves = operation == copy_outward(kernel)
        moved = c if isinstance(operation, Map) or leaves else kernel.buffer(operation.src).dtype
        allowed = widths(moved)
        if width not in allowed:
            yield f"{label}: width={width} is not one of {(1, *allowed)}"
        elif isinstance(operation, Map):
            yield from _runs(label, kernel.accumulator, kernel.buffer(operation.dst), width)
        else:
            src, dst = kernel.buffer(operation.src), kernel.buffer(operation.dst)
            tile, memory = (src, dst) if leaves else (dst, src)
            yield from _runs(label, tile, memory, width)


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
    for operation, _ in operations_of(kernel):
        if not isinstance(operation, Copy):
            continue
        src, dst = kernel.buffer(operation.src), kernel.buffer(operation.dst)
        stored = (dst,) if stores_vectors(kernel, operation) else ()
        for tile in (src, *stored):
            if tile.space is Space.SHARED and tile.row % operation.width:
                rows = f"rows of {tile.name} of {tile.row}"
                yield f"{line_of(operation)}: width={operation.width}, {rows}"


def types_change_on_the_way_to_a_fragment(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        if buffer.role is Role.ACCUMULATOR and buffer.dtype != program.problem.accumulate:
            wanted = program.problem.accumulate
            yield f"buffer {buffer.name}: {buffer.dtype}, accumulators are {wanted}"
    for operation, _ in operations_of(kernel):
        if isinstance(operation, Copy):
            src, dst = kernel.buffer(operation.src), kernel.buffer(operation.dst)
            if dst.space is not Space.REGISTER and src.dtype != dst.dtype:
                yield f"{line_of(operation)}: a copy of {src.dtype} is {dst.dtype}"


RULES = (
    copies_keep_letters,
    hints_are_of_asynchronous_copies,
    copies_go_inward_or_take_a_mapped_tile_outward,
    mapped_tiles_leave_in_slices,
    pipelines_split_k,
    shared_tiles_are_produced_once,
    widths_divide_what_they_move,
    wide_rows_stay_aligned,
    types_change_on_the_way_to_a_fragment,
)
