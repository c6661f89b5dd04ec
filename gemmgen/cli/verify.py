"""``gemmgen verify``: kernels proved right in all layers that this machine can run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gemmgen.base import text_diff
from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path
from gemmgen.cli import options
from gemmgen.cli.files import KERNEL, name_of, put
from gemmgen.cli.shape_option import WrittenShape, resolve_all
from gemmgen.cli.unified_diff import unified
from gemmgen.pipeline import compile_schedule
from gemmgen.proof.layers import ORDER, exit_code, needed_by

if TYPE_CHECKING:
    from gemmgen.proof.layers import Check
    from gemmgen.proof.outcome import Outcome, Subject

AS_EMITTED = "as emitted"
_COLORS = {"passed": "green", "failed": "red", "skipped": "yellow"}


@click.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.shapes
@click.option(
    "--require",
    "required",
    type=click.Choice(ORDER),
    multiple=True,
    help="Exit code 3 if this layer can't be run.",
)
@click.option(
    "--text",
    "edited",
    metavar="KERNEL.cu",
    help="Prove this edited copy of the emitted file in place of it: C2, C3 and G2 judge it. "
    "FILE.cu does the same, by the schedule that it states.",
)
@click.option(
    "--prove/--no-prove",
    "to_the_end",
    default=None,
    help="Layer P: as long as its proof takes, or not at all.  [default: 20 seconds at most]",
)
@options.arch
@options.settings
@options.as_json
def command(
    files: Sequence[str],
    shapes: Sequence[WrittenShape],
    required: Sequence[str],
    edited: str | None,
    to_the_end: bool | None,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
) -> None:
    """Prove the kernel of each FILE right, layer by layer.

    FILE is a schedule, or a .cu file that `gemmgen emit` wrote and you edited: its first lines
    state the schedule, or --schedule names it.  What you changed is shown first.

    C0 the schedule's text; C1 its meaning after every pass; C2 the emitted text, run on the CPU;
    C3 compiling it for six architectures; P facts of its program for all sizes (gemmgen prove);
    G2 a GPU.  Exit code 0 if all layers that could run held,
    C1 and C2 among them; 1 if one failed; 3 if C1, C2 or a required layer could not run, if the
    kernel did not run at a --shape, or if no compiler is installed to check the schedule's `require
    registers` or `require spills`.  A note is about speed and fails nothing.

    Without --shape each layer takes shapes around the kernel's tile and its stages: C1 three small
    ones; C2 eight, K = 0 among them, and some of many blocks, long sums or far addresses;
    G2 C2's eight, and three larger ones. Shapes too large for C1 and C2 are left to the GPU;
    without one that is exit code 3.
    """
    subjects = [
        _subject(path, kernel, shapes, settings, arch) for path, kernel in _pairs(files, edited)
    ]
    proved = _layer_p(to_the_end)
    results = [
        (name, subject, _verified(name, subject, proved, as_json)) for name, subject in subjects
    ]
    if as_json:
        found = [
            {"file": name, "edits": _edits(name, subject), "layers": [asdict(o) for o in outcomes]}
            for name, subject, outcomes in results
        ]
        put(json.dumps(found, indent=2) + "\n")
    codes = {
        exit_code(outcomes, (*required, *needed_by(subject.emitted.schedule)))
        for _, subject, outcomes in results
    }
    click.get_current_context().exit(min(codes - {0}, default=0))


def _layer_p(to_the_end: bool | None) -> Check:
    from gemmgen.prove import verify_layer

    match to_the_end:
        case None:
            return verify_layer.layer(verify_layer.SECONDS)
        case True:
            return verify_layer.layer(None)
        case False:
            return verify_layer.left_out("--no-prove")


def _pairs(files: Sequence[str], edited: str | None) -> list[tuple[str | None, str | None]]:
    """Each schedule's file, None for that in a kernel's first lines, and the edited kernel, None
    for the one that the schedule gives."""
    kernels = [path for path in files if path.endswith(KERNEL)]
    schedules = [path for path in files if path not in kernels]
    if edited is not None and len(files) > 1:
        raise UsageError(f"--text {shown_path(edited)} is the kernel of one FILE, not {len(files)}")
    if edited is not None and kernels:
        raise UsageError(f"--text is the kernel of a schedule, and {shown_path(files[0])} is none")
    if edited is not None or not kernels:
        return [(path, edited) for path in schedules]
    if not schedules:
        return [(None, path) for path in kernels]
    if len(schedules) == len(kernels) == 1:
        return [(schedules[0], kernels[0])]
    raise UsageError(
        f"{len(kernels)} x {KERNEL} and {len(schedules)} x .sched do not pair: pass one of each, "
        f"or {KERNEL} files alone"
    )


def _subject(
    path: str | None,
    kernel: str | None,
    shapes: Sequence[WrittenShape],
    settings: Sequence[options.Setting],
    arch: str | None,
) -> tuple[str, Subject]:
    """What is to be proved, and its name."""
    from gemmgen.proof.edited import check_edited, read_kernel, stated_schedule
    from gemmgen.proof.outcome import Subject
    from gemmgen.proof.shapes import exactly

    text = None if kernel is None else read_kernel(kernel)
    if path is not None:
        schedule, name = options.load(path, settings, arch), name_of(path)
    else:
        assert kernel is not None and text is not None
        name = shown_path(kernel)
        schedule = options.parse(stated_schedule(text, name), settings, arch)
    emitted = compile_schedule(schedule)
    if kernel is not None and text is not None:
        check_edited(emitted, text, shown_path(kernel))
        name = shown_path(kernel)
    given = resolve_all(shapes, emitted.schedule.gemm)
    return name, Subject(emitted, tuple(exactly(emitted, shape) for shape in given), text)


def _edits(name: str, subject: Subject) -> str | None:
    """The unified diff from what is emitted to an edited kernel; None without one."""
    if subject.text is None:
        return None
    return text_diff.unified(subject.emitted.text, subject.text, AS_EMITTED, name)


def _verified(name: str, subject: Subject, proved: Check, quiet: bool) -> tuple[Outcome, ...]:
    """The outcomes of one kernel, each printed when it is known."""
    from gemmgen.proof.layers import verify

    if not quiet:
        put(f"{click.style(name, bold=True)}\n")
        if subject.text is not None:
            edits = unified(subject.emitted.text, subject.text, AS_EMITTED, name)
            put(edits or "  no line differs from what is emitted\n")
    outcomes: list[Outcome] = []
    for outcome in verify(subject, proved):
        outcomes.append(outcome)
        if not quiet:
            status = click.style(f"{outcome.status:<7}", fg=_COLORS[outcome.status])
            said, *notes = outcome.lines()
            put(f"  {outcome.layer:<2}  {status}  {said}\n")
            put("".join(f"{'':15}{note}\n" for note in notes))
    return tuple(outcomes)
