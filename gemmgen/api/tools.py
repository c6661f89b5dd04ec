"""The commands as functions: prove, count and time from Python.

    import gemmgen

    gemmgen.verify("fused.sched").proved
    print(gemmgen.explain("fused.sched", 4096))
    gemmgen.bench("fused.sched", shapes=[1024, (4096, 512, 1000)])

A schedule is what ``gemmgen.compile`` takes: a path, a text, a builder or a ``Schedule``.  A shape
is one number (a cube), M, N, K and batches in order, extents by letter, or the text of ``--shape``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmgen.api.kernels import AnySchedule, Settings, compile_any
from gemmgen.base.choices import check_choice, check_sequence
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import value_shown
from gemmgen.language import parse_schedule
from gemmgen.schedule.extents import AnyShape, shape_of
from gemmgen.schedule.read import printable
from gemmgen.schedule.roles import extents

if TYPE_CHECKING:
    from gemmgen.analyze.explain import Explanation
    from gemmgen.gpu.bench_row import BenchRow
    from gemmgen.gpu.gpus import Gpu
    from gemmgen.proof.outcome import Outcome


@record
class Verification:
    """The outcome of each layer, in order; ``exit_code`` is that of ``gemmgen verify``."""

    outcomes: tuple[Outcome, ...]
    exit_code: int

    @property
    def proved(self) -> bool:
        """Whether all layers that this machine can run held, the needed ones among them."""
        return self.exit_code == 0

    def __repr__(self) -> str:
        outcomes = ", ".join(f"{o.layer} {o.status}" for o in self.outcomes)
        return f"<Verification: {outcomes}>"

    def __str__(self) -> str:
        found = ((o, *o.lines()) for o in self.outcomes)
        return "\n".join(
            f"{o.layer:<2}  {o.status:<7}  " + f"\n{'':13}".join(lines) for o, *lines in found
        )


@record
class Explained:
    """Counts and bounds of a schedule at a shape; ``str`` is the report of ``gemmgen explain``."""

    name: str
    explanation: Explanation

    def __repr__(self) -> str:
        e = self.explanation
        return f"<Explained {self.name} at {'x'.join(map(str, e.shape))} on {e.gpu.name}>"

    def figures(self) -> Mapping[str, object]:
        """The figures of ``gemmgen explain --json``."""
        from gemmgen.analyze.figures import as_json

        return as_json(self.explanation)

    def __str__(self) -> str:
        from gemmgen.analyze.plain_text import plain
        from gemmgen.analyze.tables import report
        from gemmgen.explore.next_step import wording
        from gemmgen.explore.next_step.expected import expected
        from gemmgen.explore.next_step.trying import next_step

        e = self.explanation
        own = expected(e)
        first = wording.conclusion(e, self.name, own, next_step(e, own))
        return "\n".join(map(plain, (first, *report(e))))


def verify(
    schedule: AnySchedule,
    shapes: Sequence[AnyShape] = (),
    *,
    require: Sequence[str] = (),
    text: str | None = None,
    prove: bool | float = False,
    arch: str | None = None,
    set: Settings | None = None,
) -> Verification:
    """Proves the kernel of ``schedule`` in all layers that this machine can run.

    Without ``shapes`` each layer uses its own.  ``require`` names layers (C3, P, G2) that must run.
    ``prove`` asks for layer P, facts for all sizes: True, or the most seconds that it may take.
    ``text`` is an edited copy of what ``emit_cuda`` returns: C2, C3 and G2 then judge it in place
    of the emitted text.  The path of such a copy (``mine.cu``) as ``schedule`` means the same, with
    the schedule that its first lines state.  Raises ``ScheduleError`` for a mistake in the
    schedule, ``UsageError`` for a text that is not a copy.
    """
    from gemmgen.proof.edited import check_edited, read_kernel, stated_schedule
    from gemmgen.proof.layers import ORDER, exit_code, needed_by
    from gemmgen.proof.layers import verify as outcomes_of
    from gemmgen.proof.outcome import Subject
    from gemmgen.proof.shapes import exactly
    from gemmgen.prove import verify_layer

    if not isinstance(prove, bool | int | float) or not 0 <= prove < 1e9:  # pyright: ignore
        raise UsageError(f"prove={value_shown(prove)}: it is True, False or a number of seconds")
    for layer in check_sequence("require", require):
        check_choice("require", layer, ORDER)
    check_sequence("shapes", shapes)
    name = "text"
    if isinstance(schedule, str | Path) and str(schedule).endswith(".cu"):
        if text is not None:
            raise UsageError(f"text= is the kernel of a schedule, and {schedule} is none")
        name = printable(str(schedule))
        text = read_kernel(str(schedule))
        schedule = parse_schedule(stated_schedule(text, name))
    emitted = compile_any(schedule, arch=arch, set=set)
    wanted = tuple(exactly(emitted, shape_of(emitted.schedule.gemm, shape)) for shape in shapes)
    if text is not None:
        if not isinstance(text, str):  # pyright: ignore
            raise UsageError(f"text={value_shown(text)}: it is CUDA C, as `emit_cuda` returns it")
        check_edited(emitted, text, name)
    within = None if prove is True else float(prove)
    proved = verify_layer.layer(within) if prove else verify_layer.left_out("prove=True")
    outcomes = tuple(outcomes_of(Subject(emitted, wanted, text), proved))
    code = exit_code(outcomes, (*require, *needed_by(emitted.schedule)))
    return Verification(outcomes, code)


def explain(
    schedule: AnySchedule,
    shape: AnyShape = 4096,
    *,
    gpu: str | Path | Gpu = "H200",
    beta: float = 0.0,
    arch: str | None = None,
    set: Settings | None = None,
) -> Explained:
    """Counts the memory accesses of ``schedule`` at ``shape``, and what bounds it on ``gpu``.

    No GPU is needed: ``gpu`` is the name of a known one, a file with its figures, or a ``Gpu``.
    Raises ``ScheduleError`` for a mistake in the schedule, ``UsageError`` for a shape that the
    kernel does not take or a GPU that it does not fit.
    """
    from gemmgen.analyze.explain import explain as explanation_of
    from gemmgen.gpu.gpu_names import gpu_named

    model = gpu_named(gpu)
    if not isinstance(beta, float | int) or not abs(beta) < 1e300:  # pyright: ignore
        raise UsageError(f"beta={value_shown(beta)}: it is a number, 0.0 or 1.0 say")
    found = compile_any(schedule, arch=arch, set=set).schedule
    sizes = shape_of(found.gemm, shape)
    return Explained(found.kernel, explanation_of(found, sizes, model, beta=beta))


def bench(
    schedules: AnySchedule | Mapping[str, AnySchedule],
    shapes: Sequence[AnyShape] = (1024, 2048, 4096),
    *,
    arch: str | None = None,
    set: Settings | None = None,
) -> tuple[BenchRow, ...]:
    """Times kernels against cuBLAS, interleaved, and checks their results.

    There is a row for each kernel, for cuBLAS and for cublasLt at each shape, as far as these have
    a call for the types.  ``schedules``: one, or several of one ``gemm`` line by the names of their
    rows.  Raises ``CannotCheck`` if there is no GPU.
    """
    from gemmgen.gpu import device

    device.cupy()  # raises CannotCheck without a GPU
    from gemmgen.gpu.bench import Entry
    from gemmgen.gpu.bench import bench as rows_of
    from gemmgen.proof.gpu import reference_of

    given = schedules if isinstance(schedules, Mapping) else {"": schedules}
    kernels = {name: compile_any(each, arch=arch, set=set) for name, each in given.items()}
    gemms = {kernel.schedule.gemm for kernel in kernels.values()}
    if len({tuple(extents(gemm).items()) for gemm in gemms}) != 1:
        raise UsageError("bench takes schedules of the same letters; time others by another call")
    gemm = next(iter(gemms))
    check_sequence("shapes", shapes)
    named = [
        dict(zip(extents(gemm).values(), shape_of(gemm, shape), strict=True)) for shape in shapes
    ]
    entries = [
        Entry.of(name or kernel.name, kernel, reference_of(kernel))
        for name, kernel in kernels.items()
    ]
    return rows_of(entries, named)
