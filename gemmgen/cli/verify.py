"""``gemmgen verify``: kernels proved right in all layers that this machine can run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import UsageError
from gemmgen.cli import options
from gemmgen.cli.files import name_of, put, read_kernel, shown_path
from gemmgen.cli.shape_option import WrittenShape, resolve_all
from gemmgen.pipeline import compile_schedule
from gemmgen.proof.layers import LAYERS, exit_code, needed_by

if TYPE_CHECKING:
    from gemmgen.proof.outcome import Outcome, Subject

_COLORS = {"passed": "green", "failed": "red", "skipped": "yellow"}


@click.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.shapes
@click.option(
    "--require",
    "required",
    type=click.Choice(list(LAYERS)),
    multiple=True,
    help="Exit code 3 if this layer can't be run.",
)
@click.option(
    "--text",
    "edited",
    metavar="KERNEL.cu",
    help="Prove this edited copy of the emitted file in place of it: C2, C3 and G2 judge it.",
)
@options.arch
@options.settings
@options.as_json
def command(
    files: Sequence[str],
    shapes: Sequence[WrittenShape],
    required: Sequence[str],
    edited: str | None,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
) -> None:
    """Prove the kernel of each FILE right, layer by layer.

    C0 the schedule's text; C1 its meaning after every pass; C2 the emitted text, run on the CPU;
    C3 compiling it for six architectures; G2 a GPU.  Exit code 0 if all layers that could run held,
    C1 and C2 among them; 1 if one failed; 3 if C1, C2 or a required layer could not run, if the
    kernel did not run at a --shape, or if no compiler is installed to check the schedule's `require
    registers` or `require spills`.  A note is about speed and fails nothing.

    Without --shape each layer takes shapes around the kernel's tile and its stages: C1 three small
    ones; C2 eight, K = 0 among them, and some of many blocks, long sums or far addresses;
    G2 C2's eight, and three larger ones. Shapes too large for C1 and C2 are left to the GPU;
    without one that is exit code 3.
    """
    from gemmgen.proof.edited import check_edited
    from gemmgen.proof.outcome import Subject
    from gemmgen.proof.shapes import exactly

    if edited is not None and len(files) > 1:
        raise UsageError(f"--text {shown_path(edited)} is the kernel of one FILE, not {len(files)}")
    text = None if edited is None else read_kernel(edited)
    subjects: list[tuple[str, Subject]] = []
    for path in files:
        emitted = compile_schedule(options.load(path, settings, arch))
        if edited is not None and text is not None:
            check_edited(emitted, text, shown_path(edited))
        given = resolve_all(shapes, emitted.schedule.gemm)
        wanted = tuple(exactly(emitted, shape) for shape in given)
        subjects.append((name_of(path), Subject(emitted, wanted, text)))
    results = [(name, subject, _verified(name, subject, as_json)) for name, subject in subjects]
    if as_json:
        found = [
            {"file": name, "layers": [asdict(o) for o in outcomes]} for name, _, outcomes in results
        ]
        put(json.dumps(found, indent=2) + "\n")
    codes = {
        exit_code(outcomes, (*required, *needed_by(subject.emitted.schedule)))
        for _, subject, outcomes in results
    }
    click.get_current_context().exit(min(codes - {0}, default=0))


def _verified(name: str, subject: Subject, quiet: bool) -> tuple[Outcome, ...]:
    """The outcomes of one kernel, each printed when it is known."""
    from gemmgen.proof.layers import verify

    if not quiet:
        put(f"{click.style(name, bold=True)}\n")
    outcomes: list[Outcome] = []
    for outcome in verify(subject):
        outcomes.append(outcome)
        if not quiet:
            status = click.style(f"{outcome.status:<7}", fg=_COLORS[outcome.status])
            said, *notes = outcome.lines()
            put(f"  {outcome.layer}  {status}  {said}\n")
            put("".join(f"{'':15}{note}\n" for note in notes))
    return tuple(outcomes)
