"""The rules of what an atom contracts: its steps, its pieces, and how its accumulators leave it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir.atoms import ATOMS, AtomTraits
from gemmgen.ir.boxes import tma_swizzle
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.fragment_layout import Side
from gemmgen.ir.nodes import Contract, Copy, Kernel, Loop, Map, Pipeline, Program, Promote


def atoms_find_their_pieces(program: Program, kernel: Kernel) -> Iterator[str]:
    """What an atom contracts is spread for it; the operands of one whose lanes hold pieces together
    are fragments of its shape."""
    for loop, contract in _contractions(kernel):
        atom, spread = ATOMS[contract.atom], kernel.spread
        if spread.atom != contract.atom or loop.step != atom.k:
            yield f"atom {contract.atom} of accumulators for {spread.atom}, in steps of {loop.step}"
        if atom.lanes > 1:
            yield from _pieces(program, kernel, contract, atom)
        if atom.in_place:
            yield from _tiles_in_place(program, kernel, contract)
        elif atom.lanes > 1:
            yield from _fragments(program, kernel, contract, atom)


def fragments_lie_in_aligned_lines(program: Program, kernel: Kernel) -> Iterator[str]:
    for loop, contract in _contractions(kernel):
        atom = ATOMS[contract.atom]
        for copy in (o for o in loop.body if isinstance(o, Copy) and atom.lanes > 1):
            tile = kernel.buffer(copy.src)
            line = 0 if tile.space is Space.GLOBAL else BYTES[tile.dtype] * tile.row
            if tile.space is not Space.SHARED or line % atom.line:
                yield f"{copy.dst} = {tile.name}: lines of {line} bytes"


def operands_lie_along_k(program: Program, kernel: Kernel) -> Iterator[str]:
    """Tiles of the types that an atom's loads can't turn."""
    for loop, contract in _contractions(kernel):
        atom = ATOMS[contract.atom]
        for copy in (o for o in loop.body if isinstance(o, Copy) and atom.lanes > 1):
            tile = kernel.buffer(copy.src)
            if tile.dtype not in atom.mn_major and tile.letters[-1] != program.problem.k:
                yield f"{copy.dst} = {tile.name}: {tile.dtype} along {tile.letters[-1]}"


def promotions_end_whole_steps(program: Program, kernel: Kernel) -> Iterator[str]:
    """An instruction's accumulators are of the shape and spread of those that they are promoted
    into, which happens after whole steps of a tile, or after whole tiles."""
    for pipeline in (s for s in kernel.body if isinstance(s, Pipeline)):
        for loop, promotion in (
            (x, o) for x in pipeline.consume for o in x.body if isinstance(o, Promote)
        ):
            acc, part, every = (
                kernel.buffer(promotion.dst),
                kernel.buffer(promotion.part),
                promotion.every,
            )
            if acc != kernel.accumulator or (part.shape, part.spread, part.dtype) != (
                acc.shape,
                acc.spread,
                acc.dtype,
            ):
                yield f"{promotion.dst} += {promotion.part}: accumulators of another shape"
            within = every % loop.step == 0 and pipeline.step % max(every, 1) == 0
            if every < 1 or (every % pipeline.step and not within):
                yield (
                    f"{promotion.dst} += {promotion.part} every {every} in tiles of "
                    f"{pipeline.step}"
                )
            if not kernel.spread.has_coordinates:
                yield (
                    f"{promotion.dst} += {promotion.part}: accumulators that no thread holds "
                    "alone"
                )


def sums_leave_through_shared_memory(program: Program, kernel: Kernel) -> Iterator[str]:
    """No thread knows which accumulators it holds, so they pass through a slice of shared
    memory."""
    opaque = kernel.spread.holding == "opaque"
    for statement in kernel.body:
        if not isinstance(statement, Map):
            continue
        if opaque != (statement.through is not None):
            yield (
                f"{statement.dst}: through={statement.through} of accumulators for "
                f"{kernel.spread.atom}"
            )
        elif statement.through is not None:
            slice_ = kernel.buffer(statement.through)
            outer, inner = slice_.letters
            wanted = {
                outer: kernel.spread.axis(outer).warps * kernel.spread.axis(outer).width,
                inner: kernel.work.size(inner),
            }
            if slice_.space is not Space.SHARED or dict(slice_.shape) != wanted:
                yield f"buffer {slice_.name}{dict(slice_.shape)} is not a slice {wanted}"


def _pieces(
    program: Program, kernel: Kernel, contract: Contract, atom: AtomTraits
) -> Iterator[str]:
    for letter, side in _sides(program):
        axis = kernel.spread.axis(letter)
        if (axis.lanes, axis.width) != atom.share(side):
            yield f"atom {contract.atom}: {letter} in pieces of {axis.width} for {axis.lanes} lanes"
        if axis.warps % atom.warps(side):
            yield f"atom {contract.atom}: {axis.warps} warps along {letter}"


def _tiles_in_place(program: Program, kernel: Kernel, contract: Contract) -> Iterator[str]:
    """Tiles are K-major, or, for types that may be MN-major, in atom columns that divide a
    warpgroup's share; their swizzle, if any, is TMA's."""
    atom = ATOMS[contract.atom]
    for name, (letter, side) in zip((contract.a, contract.b), _sides(program), strict=True):
        tile, axis = kernel.buffer(name), kernel.spread.axis(letter)
        mn_major = tile.letters[-1] == letter
        if tile.space is not Space.SHARED or (mn_major and tile.dtype not in atom.mn_major):
            yield f"atom {contract.atom}: {name} is not a tile along {program.problem.k}"
        elif tile.swizzle not in (None, tma_swizzle(tile.row, tile.dtype)):
            yield f"atom {contract.atom}: {name} is not swizzled as TMA does"
        elif axis.rounds != (axis.pieces // atom.pieces(side) if mn_major and side == "row" else 1):
            yield f"atom {contract.atom}: {letter} in {axis.rounds} rounds"
        elif mn_major and tile.swizzle and axis.extent // axis.warps * atom.warps(side) % tile.row:
            yield f"atom {contract.atom}: a warpgroup has part of an atom column of {name}"


def _fragments(
    program: Program, kernel: Kernel, contract: Contract, atom: AtomTraits
) -> Iterator[str]:
    problem = program.problem
    for name in (contract.a, contract.b):
        buffer = kernel.buffer(name)
        steps = dict(buffer.shape).get(problem.k)
        if buffer.space is not Space.REGISTER or steps != atom.k:
            yield f"atom {contract.atom}: {name} is not a fragment of {atom.k} steps"
        split = (contract.parts, contract.into or buffer.dtype)
        if (buffer.parts, buffer.dtype) != split or (contract.parts > 1) != bool(atom.splits):
            yield f"atom {contract.atom}: {name} has {buffer.parts} parts of {buffer.dtype}"


def _sides(program: Program) -> tuple[tuple[str, Side], ...]:
    """The sides of the accumulators' pieces, by letter."""
    return (program.problem.m, "row"), (program.problem.n, "column")


def _contractions(kernel: Kernel) -> Iterator[tuple[Loop, Contract]]:
    """Each contraction and the loop that it is in."""
    for statement in kernel.body:
        consumed = statement.consume if isinstance(statement, Pipeline) else (statement,)
        for loop in (s for s in consumed if isinstance(s, Loop)):
            yield from ((loop, o) for o in loop.body if isinstance(o, Contract))
