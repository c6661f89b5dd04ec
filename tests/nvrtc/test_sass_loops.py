"""Loops in machine code: branches back that close none, loops in loops, and the one that counts."""

from __future__ import annotations

import pytest

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.machine_code import machine_code
from gemmgen.gpu import sass, sass_loops
from gemmgen.gpu.gpus import GPUS
from gemmgen.gpu.natural_loops import natural_loops
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.edit import contraction
from gemmgen.pipeline import compile_source
from gemmgen.proof.multiplies_code import MULTIPLIES
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

from .test_sass import needs_tool

HOPPER = sorted(f"hopper/{path.stem}" for path in examples.folder().glob("hopper/*.sched"))
WAIT = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R56"

RETRIED = f"""
LDC R1, c[0x0][0x28]
again: MOV R2, R3
{WAIT}
@!P0 BRA retry
waited: FFMA R8, R9, R10, R8
FFMA R8, R9, R11, R8
@P1 BRA again
STG.E desc[UR6][R2.64], R8
EXIT
retry: {WAIT}
@!P0 BRA retry
BRA waited
end: BRA end
"""
"""Another try at a barrier lies after the kernel's end."""

ROLES = f"""
@P6 BRA producer
tile: @P5 EXIT
LDG.E R20, desc[UR6][R2.64]
step: {WAIT}
@!P0 BRA retry
waited: FFMA R8, R9, R10, R8
FFMA R8, R9, R11, R8
@P1 BRA step
FFMA R8, R8, R20, RZ
STG.E desc[UR6][R2.64], R8
@P2 BRA tile
EXIT
producer: {WAIT}
@!P0 BRA producer
again: UTMALDG.2D [UR16], [UR8]
@P3 BRA.U.ANY again
@P4 BRA producer
EXIT
retry: {WAIT}
@!P0 BRA retry
BRA waited
"""
"""Consumers, which read C in the loop over tiles, and a producer."""


def code_of(text: str) -> sass.Code:
    """The instructions of lines ``LABEL: INSTRUCTION``, listed as nvdisasm does."""
    lines: list[str] = [".text.gemm:"]
    for at, line in enumerate(text.strip().splitlines()):
        label, _, instruction = line.rpartition(": ")
        head, _, target = instruction.rpartition(" ")
        branch = "BRA" in head or "CALL" in head
        if label:
            lines.append(f".L_{label}:")
        lines.append(
            f"        /*{16 * at:04x}*/  " + (f"{head} `(.L_{target})" if branch else instruction)
        )
    return sass.parse(" ;\n".join(lines).replace(": ;", ":") + " ;\n")["gemm"]


def texts(body: sass.Code | None) -> list[str]:
    assert body is not None
    return [f"{one.guard} {one.opcode}".strip() for one in body]


def test_another_try_after_the_end_widens_no_loop() -> None:
    code = code_of(RETRIED)
    main, retry = sass_loops.loops(code)
    assert texts(main) == ["MOV", WAIT.split()[0], "@!P0 BRA", "FFMA", "FFMA", "@P1 BRA"]
    assert texts(retry) == [WAIT.split()[0], "@!P0 BRA"]
    assert sass_loops.main_loop(code) == main and sass_loops.loop_around(code, main) is None


def test_the_loop_over_tiles_is_around_the_main_one() -> None:
    """Although it alone loads from global memory."""
    code = code_of(ROLES)
    main = sass_loops.main_loop(code)
    assert texts(main) == [WAIT.split()[0], "@!P0 BRA", "FFMA", "FFMA", "@P1 BRA"]
    assert main is not None
    around = sass_loops.loop_around(code, main)
    assert texts(around)[0] == "@P5 EXIT" and texts(around)[-1] == "@P2 BRA"
    assert set(main) < set(around or ())
    steps = [body for body in sass_loops.loops(code) if sass.count(body, "UTMALDG")]
    assert [len(body) for body in steps] == [5, 2]


def test_a_loop_may_be_left_by_a_call_or_a_condition_among_operands() -> None:
    """Neither has what comes after it run only by a branch."""
    again = "again: LDG.E R4, [R2]\nFFMA R8, R9, R4, R8\n{}\nBRA again\nout: STG.E [R2], R8\nEXIT"
    for leaves in ("@P1 CALL.REL.NOINC out", "BRA.U UP0, out", "@P1 BRA out"):
        code = code_of(
            f"outer: MOV R8, RZ\n{again.format(leaves)}".replace("EXIT", "@P2 BRA outer")
        )
        main = sass_loops.main_loop(code)
        assert texts(main)[:2] == ["LDG.E", "FFMA"] and len(main or ()) == 4, leaves
        assert len(sass_loops.loop_around(code, main or ()) or ()) == 7, leaves


def test_steps_that_are_not_unrolled_belong_to_the_loop_that_loads() -> None:
    inner = (
        "tile: LDG.E R4, [R2]\nBAR.SYNC 0x0\nk: FFMA R8, R9, R4, R8\n@P0 BRA k\n@P1 BRA tile\nEXIT"
    )
    assert texts(sass_loops.main_loop(code_of(inner)))[0] == "LDG.E"
    assert len(sass_loops.main_loop(code_of(inner.replace("LDG.E", "LDS"))) or ()) == 2


def test_a_branch_back_into_what_has_two_entries_closes_no_loop() -> None:
    assert natural_loops({0: [1, 2], 1: [2], 2: [1, 3], 3: []}, 0) == {}
    assert natural_loops({0: [1], 1: [2, 3], 2: [1], 3: [3, 4, 1], 4: [], 5: [1]}, 0) == {
        1: frozenset({1, 2, 3}),
        3: frozenset({3}),
    }


@pytest.mark.proof
@needs_tool
@pytest.mark.parametrize("name", HOPPER)
def test_a_step_of_hopper_s_examples_multiplies(name: str) -> None:
    kernel = compile_kernel(compile_source(read_source(str(examples.path_of(name)))).schedule)
    section, lines = machine_code(kernel, GPUS["H200"])
    atom = contraction(kernel.emitted.program.main).atom
    if ATOMS[atom].in_place:
        products = contraction(kernel.emitted.program.main).products
        assert lines.count(f"  {MULTIPLIES[atom]}\n") == 4 * products, section
        return
    (share,) = (float(row[2].rstrip("%")) for row in section.rows if row[0] == "FFMA")
    assert share >= 85 and lines.count("  FFMA\n") % 2048 == 0, section
    tiles = [note for note in section.notes if "over a block's tiles" in note]
    assert len(tiles) == bool(kernel.lowered.interface.resident), section.notes
