"""``gemmgen prove``: facts about kernels for all sizes at once."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import writable, write_file
from gemmgen.cli import cluster_option, options
from gemmgen.cli.files import name_of, put
from gemmgen.pipeline import Emitted, compile_schedule

if TYPE_CHECKING:
    from gemmgen.prove.proof_report import ProofReport

CODES = {"proved": 0, "refuted": 1, "unknown": 3}
LOST = 3
_COLORS = {"proved": "green", "refuted": "red", "unknown": "yellow"}


@click.command("prove")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86400),
    default=60.0,
    show_default=True,
    help="The most for each fact; a fact that takes longer is unknown.",
)
@click.option(
    "--both",
    is_flag=True,
    help="Also ask the solver cvc5 each query that z3 answers; needs pip install '.[both]'.",
)
@click.option("-o", "--output", metavar="OUT", help="Also write a certificate: of one FILE.")
@cluster_option.scheduler
@cluster_option.task_seconds(3600.0, "a FILE")
@options.arch
@options.settings
@options.as_json
def command(
    files: Sequence[str],
    seconds: float,
    both: bool,
    output: str | None,
    scheduler: str | None,
    task_seconds: float,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
) -> None:
    """Prove facts about the kernel of each FILE for all sizes and leading dimensions.

    The facts are about memory accesses, barriers, races, products and stores of the lowered
    program; docs/prove.md lists them.  Assumed is what the kernel requires of its calls.  Needs
    the solver z3: pip install '.[prove]' in a clone.

    Exit code 0 if all facts are proved; 1 if one is refuted, with sizes, block, thread and
    statement, and what the interpreter shows at these sizes; 3 if one is unknown, with the
    construct that no rule covers, or the time limit. Unknown never counts as proved.

    With --both, cvc5 is asked each query that z3 says cannot hold. What it confirms and what it
    does not know is reported; if it finds values for one, that is an error with exit code 1, the
    query is printed, and no certificate is written.

    With --scheduler each FILE is a task of a Dask worker; the report is in the order of the files.
    If a worker ends, its FILE is tried once on another one. A FILE that is then lost, or that takes
    longer than --task-seconds, is reported as lost, with exit code 3.
    """
    from gemmgen.prove import second_solver, solver

    cluster_option.check(scheduler)
    _check(files, seconds, output)
    emitted = [
        (name_of(path), compile_schedule(options.load(path, settings, arch))) for path in files
    ]
    solver.version()
    if both:
        second_solver.version()
    every = (
        _here(emitted, seconds, both)
        if scheduler is None
        else _on_cluster(scheduler, emitted, seconds, both, task_seconds)
    )
    with closing(every):
        found = [_shown(name, every, as_json) for name, _ in emitted]
    if as_json:
        rows = [_row(name, one) for (name, _), one in zip(emitted, found, strict=True)]
        put(json.dumps(rows, indent=2) + "\n")
    (_, kernel), first = emitted[0], found[0]
    if output is not None and not isinstance(first, str):
        from gemmgen.prove.certificate import certificate

        write_file(output, certificate(kernel, first), *files)
    codes = {LOST if isinstance(one, str) else CODES[one.proof.status] for one in found}
    click.get_current_context().exit(min(codes - {0}, default=0))


def _check(files: Sequence[str], seconds: float, output: str | None) -> None:
    """Raises ``UsageError`` if an option is wrong."""
    if math.isnan(seconds):
        raise UsageError("--seconds nan is not a number of seconds; 60 say")
    if output is not None:
        if len(files) > 1:
            raise UsageError(f"-o {output} is the certificate of one FILE, not of {len(files)}")
        writable(output, *files)


def _here(
    kernels: Sequence[tuple[str, Emitted]], seconds: float, both: bool
) -> Generator[ProofReport | str]:
    from gemmgen.prove import proof_report

    for _, emitted in kernels:
        yield proof_report.examine(emitted, seconds, both)


def _on_cluster(
    address: str,
    kernels: Sequence[tuple[str, Emitted]],
    seconds: float,
    both: bool,
    task_seconds: float,
) -> Generator[ProofReport | str]:
    """The reports in the order of ``kernels``; in the place of one, why its task was lost."""
    from gemmgen.base.dask_client import connected
    from gemmgen.prove.cluster_proofs import proofs

    with (
        connected(address) as cluster,
        closing(proofs(cluster.outcomes, kernels, seconds, both, task_seconds)) as outcomes,
    ):
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            yield outcome.lost if outcome.value is None else outcome.value


def _shown(name: str, every: Iterator[ProofReport | str], as_json: bool) -> ProofReport | str:
    """The next result, which is printed unless all are printed as JSON."""
    from gemmgen.prove.second_opinion import SolversDisagree

    try:
        found = next(every)
    except SolversDisagree as wrong:
        row = {"file": name, "status": "disagreement", "about": wrong.about, "query": wrong.query}
        put(json.dumps([row], indent=2) + "\n" if as_json else f"; {name}\n{wrong.query}")
        raise
    if not as_json:
        put("\n".join([click.style(name, bold=True), *_lines(found)]) + "\n")
    return found


def _lines(found: ProofReport | str) -> list[str]:
    from gemmgen.prove import proof_report as reports

    if isinstance(found, str):
        return [f"  {click.style('lost', fg='red')}: {found}"]
    lines = [f"  assuming {', '.join(found.proof.assumed) or 'nothing'}"]
    for outcome in found.proof.outcomes:
        status = click.style(f"{outcome.status:<7}", fg=_COLORS[outcome.status])
        lines.append(f"  {outcome.fact:<15}  {status}  {reports.detail(outcome)}")
        lines += [f"{'':28}{line}" for line in reports.evidence(found, outcome)]
    lines.append(f"  {reports.summary(found)}")
    return lines


def _row(name: str, found: ProofReport | str) -> dict[str, object]:
    """The JSON of a result."""
    from gemmgen.prove.proof_report import as_json

    if isinstance(found, str):
        return {"file": name, "status": "lost", "reason": found}
    return {"file": name, **as_json(found)}
