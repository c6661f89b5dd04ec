"""The rules of what an atom contracts: its steps, its pieces, and how its sums leave it."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir.atoms import ATOMS, AtomTraits
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.nodes import Contract, Copy, Kernel, Loop, Map, Pipeline, Program


def atoms_find_their_pieces(program: Program, kernel: Kernel) -> Iterator[str]:
    """What an atom contracts is spread for it; the operands of one whose lanes hold pieces together
    are fragments of its shape."""
    for loop, contract in _contractions(kernel):
        atom, spread = ATOMS[contract.atom], kernel.spread
        if spread.atom != contract.atom or loop.step != atom.k:
            yield f"atom {contract.atom} of sums for {spread.atom}, in steps of {loop.step}"
        if atom.lanes > 1:
            yield from _fragments(program, kernel, contract, atom)


def fragments_lie_in_aligned_lines(program: Program, kernel: Kernel) -> Iterator[str]:
    for loop, contract in _contractions(kernel):
        atom = ATOMS[contract.atom]
        for copy in (o for o in loop.body if isinstance(o, Copy) and atom.lanes > 1):
            tile = kernel.buffer(copy.src)
            line = 0 if tile.space is Space.GLOBAL else BYTES[tile.dtype] * tile.row
            if tile.space is not Space.SHARED or line % atom.line:
                yield f"{copy.dst} = {tile.name}: lines of {line} bytes"


def sums_leave_through_shared_memory(program: Program, kernel: Kernel) -> Iterator[str]:
    """No thread knows which sums it holds, so they pass through a slice of shared memory."""
    opaque = kernel.spread.holding == "opaque"
    for statement in kernel.body:
        if not isinstance(statement, Map):
            continue
        if opaque != (statement.through is not None):
            yield f"{statement.dst}: through={statement.through} of sums for {kernel.spread.atom}"
        elif statement.through is not None:
            slice_ = kernel.buffer(statement.through)
            outer, inner = slice_.letters
            wanted = {
                outer: kernel.spread.axis(outer).warps * kernel.spread.axis(outer).width,
                inner: kernel.work.size(inner),
            }
            if slice_.space is not Space.SHARED or dict(slice_.shape) != wanted:
                yield f"buffer {slice_.name}{dict(slice_.shape)} is no slice {wanted}"


def _fragments(
    program: Program, kernel: Kernel, contract: Contract, atom: AtomTraits
) -> Iterator[str]:
    problem, spread = program.problem, kernel.spread
    for letter, side in ((problem.m, atom.m), (problem.n, atom.n)):
        axis = spread.axis(letter)
        if (axis.lanes, axis.width) != (1, side):
            yield f"atom {contract.atom}: {letter} in pieces of {axis.width} for {axis.lanes} lanes"
    for name in (contract.a, contract.b):
        buffer = kernel.buffer(name)
        steps = dict(buffer.shape).get(problem.k)
        if buffer.space is not Space.REGISTER or steps != atom.k:
            yield f"atom {contract.atom}: {name} is no fragment of {atom.k} steps"


def _contractions(kernel: Kernel) -> Iterator[tuple[Loop, Contract]]:
    """Each contraction and the loop that it is in."""
    for statement in kernel.body:
        consumed = statement.consume if isinstance(statement, Pipeline) else (statement,)
        for loop in (s for s in consumed if isinstance(s, Loop)):
            yield from ((loop, o) for o in loop.body if isinstance(o, Contract))
