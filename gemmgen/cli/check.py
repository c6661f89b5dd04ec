"""``gemmgen check``: schedules that compile, and all mistakes of those that don't."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

from gemmgen.base.errors import CannotCheck, GemmgenError, UsageError
from gemmgen.base.output_file import shown_path
from gemmgen.base.source import Source
from gemmgen.cli import options
from gemmgen.cli.files import complain, name_of, put, read_schedule
from gemmgen.language import choices
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.read import read_source


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--proof",
    metavar="PROOF.json",
    help="Check that this certificate of gemmgen prove is one of FILE's emitted text.",
)
@options.arch
@options.settings
def command(
    files: Sequence[str],
    proof: str | None,
    arch: str | None,
    settings: Sequence[options.Setting],
) -> None:
    """Compile each FILE: a line for one that is right, all mistakes of one that isn't.

    Exit code 3 if no compiler is installed to check `require registers` or `require spills`; 1 if
    --proof is the certificate of another text, or of one that is not proved.
    """
    if proof is not None and len(files) > 1:
        raise UsageError(f"--proof {shown_path(proof)} is of one FILE, not of {len(files)}")
    worst = 0
    for path in files:
        try:
            source = read_schedule(path)
            about, unchecked = _about(source, settings, arch)
            put(f"{name_of(path)}: ok   {about}\n")
            if proof is not None:
                worst = worst or _against(proof, source, settings, arch)
            if unchecked:
                click.echo(f"{name_of(path)}: {unchecked}\n", err=True)
                worst = worst or CannotCheck.exit_code
        except GemmgenError as error:
            worst = error.exit_code if worst in (0, CannotCheck.exit_code) else worst
            complain(error, "\n")
    click.get_current_context().exit(worst)


def _against(
    proof: str, source: Source, settings: Sequence[options.Setting], arch: str | None
) -> int:
    """Compares a certificate with the emitted text; the exit code."""
    from gemmgen.prove.certificate import disagreement

    name = shown_path(proof)
    emitted = compile_schedule(options.parse(source, settings, arch))
    wrong = disagreement(emitted, read_source(proof).text, name)
    if wrong:
        click.echo(f"gemmgen: {wrong}", err=True)
        return 1
    put(f"{name}: the proof of this text\n")
    return 0


def _about(
    source: Source, settings: Sequence[options.Setting], arch: str | None
) -> tuple[str, str]:
    """A right schedule's summary; and which of its ``require`` lines were not checked."""
    sets = {} if settings else choices(source)
    if sets:
        count = math.prod(len(choice.values) for choice in sets.values())
        return f"a search space of {count:,} schedules: {', '.join(sets)}", ""
    emitted = compile_schedule(options.parse(source, settings, arch))
    return _launch(emitted), options.unchecked(emitted)


def _launch(emitted: Emitted) -> str:
    interface = emitted.interface
    threads, shared = interface.threads, interface.shared
    return f"{emitted.name}: {threads} threads, {shared:,} bytes of shared memory, {emitted.target}"
