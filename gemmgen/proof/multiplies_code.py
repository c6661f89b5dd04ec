"""Check the machine code of wgmma kernels: the number of multiplications for a tile along k is the
schedule's, and they are not serialized."""

from __future__ import annotations

import re

from gemmgen.gpu import sass, sass_loops
from gemmgen.gpu.compiler import compile_text
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.edit import contraction, pipeline_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.target import WARP
from gemmgen.pipeline import Emitted
from gemmgen.proof.code_findings import Findings

MULTIPLIES: dict[Atom, str] = {
    "m64nNk16": "HGMMA",
    "m64nNk16_f32": "HGMMA",
    "m64nNk32": "QGMMA",
    "m64nNk32_i8": "IGMMA",
    "m64nNk8": "HGMMA",
}
"""The machine's instruction of an atom."""
MOST_MOVED = 4
"""Moves to uniform registers in a tile's loop, as of descriptors that each lane computes."""
_NOTE = re.compile(r"\(C75\d\d\) *(.*(?:serialized|ignored).*)")
"""ptxas's words for multiplications that wait for one another, and for registers that do not go
from one warpgroup to another."""


def findings(emitted: Emitted) -> Findings:
    """An error if the loop's multiplications are not the schedule's; notes on what slows them.

    Raises ``CannotCheck`` if no tool here reads machine code.
    """
    program = emitted.program
    atom = contraction(program.main).atom
    if not ATOMS[atom].in_place:
        return Findings()
    return of_text(emitted.text, emitted.target, multiplies(program, program.main), atom)


def multiplies(program: Program, kernel: Kernel) -> int:
    """The number of instructions with which a warpgroup multiplies a tile along k."""
    traits, pipeline = ATOMS[contraction(kernel).atom], pipeline_of(kernel)
    assert pipeline is not None
    rows = kernel.spread.axis(program.problem.m)
    of_warpgroup = rows.extent // (rows.warps // (traits.lanes // WARP))
    products = contraction(kernel).products if traits.splits else 1
    return pipeline.step // traits.k * (of_warpgroup // traits.m) * products


def of_text(text: str, target: str, promised: int, atom: Atom = "m64nNk16") -> Findings:
    """The findings of a text whose loop over k tiles must have ``promised`` multiplications by
    ``atom``."""
    compiled = compile_text(text, target)
    notes = [f"{target}: ptxas says: {said.strip()}" for said in _NOTE.findall(compiled.log)]
    loop = sass_loops.main_loop(sass.disassemble(compiled.cubin)) or ()
    name = MULTIPLIES[atom]
    count = sass.count(loop, name)
    if not count or count % promised:
        said = f"the loop over k tiles has {count} {name}, and the schedule implies {promised}"
        return Findings((f"{target}: {said}",), tuple(notes))
    moved = sass.count(loop, "R2UR")
    if moved > MOST_MOVED * (count // promised):
        usual = f"at most {MOST_MOVED} are usual"
        notes.append(f"{target}: the loop over k tiles has {moved} R2UR, {usual}")
    return Findings(notes=tuple(notes))
