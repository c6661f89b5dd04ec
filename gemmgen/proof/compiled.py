"""C3: the text compiles without warnings for every architecture that can run it, to machine code
that is legal there and does what the schedule says.  Figures of speed are notes: they fail nothing.
"""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import compiler
from gemmgen.ir.nodes import Program
from gemmgen.ir.occupancy import registers_by_role
from gemmgen.ir.target import REGISTER_FILE, REGISTER_UNIT, TARGETS
from gemmgen.limits.residency import fits
from gemmgen.pipeline import Emitted
from gemmgen.proof import code_checks, nvcc_object
from gemmgen.proof.first_architecture import first_architecture
from gemmgen.proof.gates import gates_of, mistakes, spelled, spills_of
from gemmgen.proof.outcome import Outcome, Subject, failed, passed, skipped

LAYER = "C3"
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")


def check(subject: Subject) -> Outcome:
    """Compiles the text, and checks registers against the block's threads and ``require`` lines."""
    emitted = subject.emitted
    missing = compiler.available()
    if missing is not None:
        return skipped(LAYER, _unchecked(emitted, missing))
    found: dict[str, compiler.Report] = {}
    for arch in architectures(emitted):
        try:
            found[arch] = compiler.reported(emitted.text, arch)
        except compiler.CompileError as refused:
            return failed(LAYER, str(refused))
        except CannotCheck as unsure:
            return skipped(LAYER, _unchecked(emitted, str(unsure)))
    figures = {
        arch: {
            "registers": c.registers,
            "spills": c.spills,
            "spill_stores": c.spill_stores,
            "spill_loads": c.spill_loads,
        }
        for arch, c in found.items()
    }
    by_nvcc = nvcc_object.compiled(emitted.text, emitted.target)
    complaint = _complaint(emitted, found) or by_nvcc.complaint
    if complaint is not None:
        return replace(failed(LAYER, complaint), figures=figures)
    machine, checked = code_checks.checked(emitted, found)
    outcome = passed(LAYER, f"{_summary(found)}; {by_nvcc.done}; {checked}")
    if machine.errors:
        outcome = failed(LAYER, machine.errors[0])
    return replace(outcome, figures=figures, notes=machine.notes)


def _unchecked(emitted: Emitted, why: str) -> str:
    """``why``, and the ``require`` lines that were not checked because of it."""
    gates = gates_of(emitted.schedule)
    return f"{why}; not evaluated: {spelled(gates)}" if gates else why


def architectures(emitted: Emitted) -> tuple[str, ...]:
    """The architectures that have enough shared memory and the instructions; only itself for an
    exact target (``sm_90a``)."""
    if not emitted.target.removeprefix("sm_").isdigit():
        return (emitted.target,)
    interface, since = emitted.interface, first_architecture(emitted)
    fitting = [
        arch
        for arch in ARCHITECTURES
        if TARGETS[arch].shared >= interface.shared
        and int(arch.removeprefix("sm_")) >= since
        and fits(TARGETS[arch], interface.threads, blocks_asked(emitted.program))
    ]
    return tuple(dict.fromkeys((*fitting, emitted.target)))


def blocks_asked(program: Program) -> int:
    """The minimum of resident blocks that the program asks for; 1 if it asks for none."""
    return max(1, program.main.bounds.blocks)


def _complaint(emitted: Emitted, found: dict[str, compiler.Report]) -> str | None:
    threads = emitted.interface.threads
    for arch, compiled in found.items():
        needed = -(-compiled.registers // REGISTER_UNIT) * REGISTER_UNIT * threads
        if needed > REGISTER_FILE:
            return (
                f"{arch}: {compiled.registers} registers for each of {threads} threads are more "
                f"than the {REGISTER_FILE:,} of a block, so no launch would succeed"
            )
    short = _too_few(emitted, found[emitted.target])
    if short is not None:
        return short
    broken = mistakes(emitted, found[emitted.target])
    return broken[0].message if broken else None


def _too_few(emitted: Emitted, compiled: compiler.Report) -> str | None:
    """Whether a block has fewer registers at launch than ``setmaxnreg`` gives its warpgroups: those
    that raise their count would wait forever."""
    main = emitted.program.main
    shared_out = registers_by_role(main, emitted.target)
    if shared_out is None:
        return None
    fewer, more = shared_out
    consumers = main.spread.threads
    needed = fewer * (main.threads - consumers) + more * consumers
    had = compiled.registers // REGISTER_UNIT * REGISTER_UNIT * main.threads
    if had >= needed:
        return None
    return (
        f"{emitted.target}: {compiled.registers} registers for each of {main.threads} threads are "
        f"{had:,}, and its warpgroups share out {needed:,}"
    )


def _summary(found: dict[str, compiler.Report]) -> str:
    parts: list[str] = []
    for arch, compiled in found.items():
        spills = f" ({spills_of(compiled)} spilled)" if compiled.spills else ""
        parts.append(f"{arch} {compiled.registers}{spills}")
    compiler = next(iter(found.values())).compiler
    return f"{compiler} compiles it without warnings; registers: {', '.join(parts)}"
