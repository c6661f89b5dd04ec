"""The rules of buffers: extents, spreads, padding, stages and swizzles."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.boxes import lands_at, tma_swizzle
from gemmgen.ir.buffers import AxisSpread, Role, Space, axes_of_operand
from gemmgen.ir.dtypes import BYTES, widest
from gemmgen.ir.edit import contraction, operations_of, wide_access
from gemmgen.ir.fragment_layout import FragmentLayout, Side
from gemmgen.ir.nodes import Contract, Copy, Kernel, Map, Program, Promote


def extents_are_those_of_the_space(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        for letter, size in buffer.shape:
            if (size is None) != (buffer.space is Space.GLOBAL):
                yield f"buffer {buffer.name}: extent {letter}={size} in {buffer.space.value} memory"
            if size is not None and size < 1:
                yield f"buffer {buffer.name}: extent {letter}={size} is not positive"


def roles_are_those_of_the_operations(program: Program, kernel: Kernel) -> Iterator[str]:
    """A buffer's role is what operations do with it; and it is of the tensor that it is copied
    from, or to."""
    inputs, output = (program.problem.a.name, program.problem.b.name), program.problem.c.name
    planes = dict.fromkeys((split.dst for split in program.splits), Role.PLANES)
    roles, of = _roles(kernel) | planes, dict[Role, tuple[str, ...]]()
    of |= dict.fromkeys((Role.PLANES, Role.TILE, Role.FRAGMENT), inputs)
    scales = tuple(scaling.tensor.name for scaling in program.problem.scales)
    of[Role.TILE] = (*inputs, *scales)
    for buffer in kernel.buffers:
        known = buffer.name in (*inputs, *scales, output)
        tensor = Role.TENSOR if known else Role.TEMPORARY
        role = roles.get(buffer.name, tensor if buffer.space is Space.GLOBAL else Role.ACCUMULATOR)
        if buffer.role is not role:
            yield f"buffer {buffer.name}: a {buffer.role.value}, used as a {role.value}"
        elif role is Role.STAGING:
            through = any(isinstance(s, Map) and s.through == buffer.name for s in kernel.body)
            if buffer.of != (kernel.accumulator.name if through else output):
                yield f"buffer {buffer.name}: what is staged is not {buffer.of}"
        elif buffer.of not in of.get(role, ("",)):
            yield f"buffer {buffer.name}: a {role.value} of {buffer.of}"
    for copy in (o for o, _ in operations_of(kernel) if isinstance(o, Copy)):
        src, dst = kernel.buffer(copy.src), kernel.buffer(copy.dst)
        if dst.role in (Role.TILE, Role.FRAGMENT) and src.tensor != dst.tensor:
            yield f"buffer {dst.name}: of {dst.tensor}, copied from {src.tensor}"


def planes_are_split_once(program: Program, kernel: Kernel) -> Iterator[str]:
    """Each plane buffer of the contracting kernel is written by one ``Split`` of its tensor."""
    if kernel is not program.main:
        return
    planes = {b.name: (b.of, b.parts) for b in kernel.buffers if b.role is Role.PLANES}
    split = [(one.dst, (one.src, one.parts)) for one in program.splits]
    if sorted(split) != sorted(planes.items()):
        yield f"splits {sorted(split)} are not those of the planes {sorted(planes.items())}"


def _roles(kernel: Kernel) -> dict[str, Role]:
    """Roles that follow from operations, by the names of buffers."""
    found: dict[str, Role] = {}
    for operation, _ in operations_of(kernel):
        match operation:
            case Copy(dst=dst) if kernel.buffer(dst).space is Space.SHARED:
                found[dst] = Role.TILE
            case Contract(a=a, b=b):
                held = (x for x in (a, b) if kernel.buffer(x).space is Space.REGISTER)
                found |= dict.fromkeys(held, Role.FRAGMENT)
            case Promote(part=part):
                found[part] = Role.PARTIAL
            case Map(dst=dst, through=through):
                staged = (x for x in (dst, through) if x and kernel.buffer(x).space is Space.SHARED)
                found |= dict.fromkeys(staged, Role.STAGING)
            case _:
                pass
    return found


def spreads_cover_register_tiles(program: Program, kernel: Kernel) -> Iterator[str]:
    for buffer in kernel.buffers:
        if (buffer.spread is None) != (buffer.space is not Space.REGISTER):
            yield f"buffer {buffer.name}: register buffers have a spread, others have none"
        elif buffer.spread is not None:
            for axis in buffer.spread.axes:
                if min(axis.warps, axis.pieces, axis.lanes, axis.width) < 1:
                    yield f"buffer {buffer.name}: axis {axis.letter} has a factor below 1"
                elif axis.pieces % axis.rounds:
                    yield f"buffer {buffer.name}: axis {axis.letter} has a share of a round"
            extents = {axis.letter: axis.extent for axis in buffer.spread.axes}
            if extents != dict(buffer.shape):
                yield f"buffer {buffer.name}: spread over {extents}, shape {dict(buffer.shape)}"


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
        fragment = buffer.role is Role.FRAGMENT
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
            if buffer.atom_width:
                yield f"buffer {buffer.name}: atom columns of rows that are not permuted"
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
        elif buffer.atom_width and (buffer.atom_width != swizzle.period or row % buffer.atom_width):
            yield f"buffer {buffer.name}: atom columns of {buffer.atom_width} in rows of {row}"
        # The slice of an unfused epilogue's temporary is accessed as wide as C's will be, or less.
        elif swizzle.chunk % min(wide_access(kernel, buffer), widest(buffer.dtype)):
            yield f"buffer {buffer.name}: a swizzle of chunks of {swizzle.chunk}"


def boxes_land_as_tiles_lie(program: Program, kernel: Kernel) -> Iterator[str]:
    for copy in (o for o, _ in operations_of(kernel) if isinstance(o, Copy) and o.mode == "tma"):
        for tile in (kernel.buffer(copy.src), kernel.buffer(copy.dst)):
            if tile.swizzle and tile.swizzle != tma_swizzle(tile.row, tile.dtype):
                yield f"buffer {tile.name}: TMA swizzles rows of {tile.row} otherwise"
            if tile.space is Space.SHARED and tile.stages * tile.parts * tile.atom_columns > 1:
                bytes_of_column = tile.atom_column_rows * tile.row * BYTES[tile.dtype]
                if bytes_of_column % lands_at(tile):
                    yield (
                        f"buffer {tile.name}: atom columns of {bytes_of_column} bytes, and TMA "
                        "needs "
                        f"multiples of {lands_at(tile)}"
                    )


def fragments_are_distributed_like_the_accumulator(
    program: Program, kernel: Kernel
) -> Iterator[str]:
    """Or as their atom states, where that says which lane has which element."""
    axes = {axis.letter: axis for axis in kernel.spread.axes}
    stated = {b.name: axes | _stated(program, kernel, b.name) for b in kernel.buffers if b.spread}
    for buffer in kernel.buffers:
        for axis in buffer.spread.axes if buffer.spread else ():
            along_k = axis.letter == program.problem.k
            wanted = stated[buffer.name].get(axis.letter)
            if along_k and wanted is None:
                wanted = kernel.spread.k_layout or axis
            if axis != wanted:
                yield f"buffer {buffer.name}: axis {axis.letter} is not distributed like acc's"
        if buffer.spread and buffer.spread.x != kernel.spread.x:
            yield f"buffer {buffer.name}: x={buffer.spread.x} is not acc's {kernel.spread.x}"
        if buffer.spread and buffer.spread.atom != kernel.spread.atom:
            yield f"buffer {buffer.name}: atom={buffer.spread.atom}, acc's {kernel.spread.atom}"


def _stated(program: Program, kernel: Kernel, name: str) -> dict[str, AxisSpread]:
    """The axes of an operand's fragment that its atom states."""
    if not any(isinstance(o, Contract) for o, _ in operations_of(kernel)):
        return {}
    contract, problem = contraction(kernel), program.problem
    atom = ATOMS[contract.atom]
    operands: tuple[tuple[str, str, FragmentLayout | None, Side], ...] = (
        (contract.a, problem.m, atom.a, "row"),
        (contract.b, problem.n, atom.b, "column"),
    )
    for operand, letter, layout, side in operands:
        if operand == name and layout is not None:
            axes = axes_of_operand(kernel.spread.axis(letter), layout, side, problem.k)
            return {axis.letter: axis for axis in axes}
    return {}
