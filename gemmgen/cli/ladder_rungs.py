"""The rungs of a ladder: schedules, and what is known about them without a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gemmgen.analyze import formulas
from gemmgen.base.errors import ScheduleError
from gemmgen.base.record import record
from gemmgen.cli import options
from gemmgen.cli.timed import named
from gemmgen.ir.buffers import Space
from gemmgen.ir.edit import copies
from gemmgen.ir.nodes import Program
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule import examples
from gemmgen.schedule.formatting import format_directive
from gemmgen.schedule.model import Schedule


@record
class Rung:
    """A kernel of a ladder.

    ``reads`` is the formula of its global reads, in elements; ``documents`` the share of cuBLAS, in
    percent, that was published for it (RTX 3080, 1024).
    """

    name: str
    kernel: Emitted
    reads: str
    documents: int | None = None


def built_in() -> tuple[Rung, ...]:
    """The examples of the ladder, each after those it builds on."""
    return tuple(
        replace(rung, documents=examples.PERCENTAGES.get(rung.name))
        for rung in from_files([str(examples.path_of(name)) for name in examples.ladder()]).rungs
    )


@record
class Rungs:
    """The rungs of a ladder; ``left_out`` names files that are refused, and says why."""

    rungs: tuple[Rung, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def from_files(paths: Sequence[str]) -> Rungs:
    """One rung per file; a file that is refused is left out.  Raises if all of them are."""
    kernels: dict[str, Emitted] = {}
    refused: dict[str, ScheduleError] = {}
    for path in paths:
        try:
            kernels[path] = compile_schedule(options.load(path))
        except ScheduleError as error:
            refused[path] = error
    if refused and not kernels:
        raise next(iter(refused.values()))
    rungs = tuple(_rung(name, kernel) for name, kernel in named(kernels, kernels.values()).items())
    left_out = ((Path(path).stem, error.mistakes[0].message) for path, error in refused.items())
    return Rungs(rungs, tuple(left_out))


def prefixes(path: str) -> Rungs:
    """The naive kernel, then one more directive in each rung; raises if the whole schedule is
    refused."""
    whole = options.load(path)
    compile_schedule(whole)
    found: list[Rung] = []
    left_out: list[tuple[str, str]] = []
    for name, schedule in _prefixes(whole):
        try:
            found.append(_rung(name, compile_schedule(schedule)))
        except ScheduleError as error:
            left_out.append((name, error.mistakes[0].message))
    return Rungs(tuple(found), tuple(left_out))


def _prefixes(whole: Schedule) -> Iterator[tuple[str, Schedule]]:
    bare = replace(whole, directives=(), epilogue=None, requires=())
    yield "naive", bare
    for count, directive in enumerate(whole.directives, 1):
        yield f"+ {format_directive(directive)}", replace(bare, directives=whole.directives[:count])
    if whole.epilogue is not None:
        yield "+ fuse_epilogue", replace(whole, requires=())


def _rung(name: str, kernel: Emitted) -> Rung:
    return Rung(name, kernel, reads_of(kernel.program))


def reads_of(program: Program) -> str:
    """Elements of A and B read from global memory, as a formula: ``MNK(1/128 + 1/128)``.

    A staged operand is read once for the block's columns (of A) or rows (of B), another one once
    for the thread's.
    """
    problem, kernel = program.problem, program.main
    shared = {b.name for b in kernel.buffers if b.space is Space.SHARED}
    staged = {copy.src for copy in copies(kernel) if copy.dst in shared}

    def times(tensor: str, letter: str) -> str:
        uses = (
            kernel.work.size(letter) if tensor in staged else kernel.spread.axis(letter).registers
        )
        return "1" if uses == 1 else f"1/{uses}"

    of_b, of_a = times(problem.b.name, problem.m), times(problem.a.name, problem.n)
    products = formulas.products_of(problem)
    return formulas.times(2, products) if of_a == of_b == "1" else f"{products}({of_b} + {of_a})"
