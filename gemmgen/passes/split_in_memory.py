"""``decompose`` for instructions that read tiles in shared memory (wgmma).

No lane holds an operand that it could split.  So a pre-pass splits A and B, and writes their terms
to memory as planes, one after another, each in the operand's storage order.  TMA copies a tile of
each plane, and a stage has the tiles of all terms.
"""

from __future__ import annotations

from dataclasses import replace

from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.boxes import with_type
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.edit import contraction, edit_buffer, edit_main, edit_operations, pipeline_of
from gemmgen.ir.nodes import Contract, Copy, Program, Split

PLANES = "{tensor}_parts"
"""The name of a tensor's terms in memory."""


def with_parts_in_memory(program: Program) -> Program:
    """``program`` with kernels that split its operands, whose parts TMA copies in place of these,
    if its instruction multiplies parts that lie in shared memory."""
    contract, pipeline = contraction(program.main), pipeline_of(program.main)
    atom = ATOMS[contract.atom]
    if not atom.in_place or atom.splits is None or pipeline is None:
        return program
    for copy in pipeline.produce:
        if copy.mode == "tma" and program.main.buffer(copy.src).dtype == atom.splits:
            program = _split(program, contract, copy)
    return program


def _split(program: Program, contract: Contract, copied: Copy) -> Program:
    kernel = program.main
    source, name = kernel.buffer(copied.src), PLANES.format(tensor=copied.src)
    assert contract.into is not None
    origins = tuple(x for x in contract.origins if x.split()[0] == "decompose")
    how = {"dtype": contract.into, "parts": contract.parts}
    planes = replace(source, name=name, role=Role.PLANES, of=source.name, origins=origins, **how)

    def of_parts(tile: Buffer) -> Buffer:
        assert contract.into is not None
        return replace(with_type(tile, contract.into), parts=contract.parts)

    def switch(operation: Copy | Contract) -> Copy | Contract:
        return replace(copied, src=name) if operation == copied else operation

    kernel = edit_operations(edit_buffer(kernel, copied.dst, of_parts), switch)
    buffers = list(kernel.buffers)
    buffers.insert(buffers.index(source) + 1, planes)
    scaled = DECOMPOSITIONS[contract.into].scaled
    first = Split(name, source.name, contract.parts, scaled, origins)
    program = edit_main(program, lambda _: replace(kernel, buffers=tuple(buffers)))
    return replace(program, splits=(*program.splits, first))
