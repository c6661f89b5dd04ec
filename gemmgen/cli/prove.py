"""``gemmgen prove``: facts about kernels for all sizes at once."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import writable, write_file
from gemmgen.cli import options
from gemmgen.cli.files import name_of, put
from gemmgen.pipeline import Emitted, compile_schedule

if TYPE_CHECKING:
    from gemmgen.prove.proof_report import ProofReport

CODES = {"proved": 0, "refuted": 1, "unknown": 3}
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
@options.arch
@options.settings
@options.as_json
def command(
    files: Sequence[str],
    seconds: float,
    both: bool,
    output: str | None,
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
    """
    from gemmgen.prove import second_solver, solver

    if math.isnan(seconds):
        raise UsageError("--seconds nan is not a number of seconds; 60 say")
    if output is not None:
        if len(files) > 1:
            raise UsageError(f"-o {output} is the certificate of one FILE, not of {len(files)}")
        writable(output, *files)
    emitted = [
        (name_of(path), compile_schedule(options.load(path, settings, arch))) for path in files
    ]
    solver.version()
    if both:
        second_solver.version()
    reports = [(name, one, _proved(name, one, seconds, both, as_json)) for name, one in emitted]
    if as_json:
        from gemmgen.prove.proof_report import as_json as all_of

        put(
            json.dumps([{"file": name, **all_of(own)} for name, _, own in reports], indent=2) + "\n"
        )
    if output is not None:
        from gemmgen.prove.certificate import certificate

        (_, one, report), *_ = reports
        write_file(output, certificate(one, report), *files)
    codes = {CODES[report.proof.status] for _, _, report in reports}
    click.get_current_context().exit(min(codes - {0}, default=0))


def _proved(name: str, emitted: Emitted, seconds: float, both: bool, as_json: bool) -> ProofReport:
    from gemmgen.prove import proof_report as reports
    from gemmgen.prove.second_opinion import SolversDisagree

    try:
        report = reports.examine(emitted, seconds, both)
    except SolversDisagree as wrong:
        found = {"file": name, "status": "disagreement", "about": wrong.about, "query": wrong.query}
        put(json.dumps([found], indent=2) + "\n" if as_json else f"; {name}\n{wrong.query}")
        raise
    if as_json:
        return report
    lines = [click.style(name, bold=True)]
    lines.append(f"  assuming {', '.join(report.proof.assumed) or 'nothing'}")
    for outcome in report.proof.outcomes:
        status = click.style(f"{outcome.status:<7}", fg=_COLORS[outcome.status])
        lines.append(f"  {outcome.fact:<15}  {status}  {reports.detail(outcome)}")
        lines += [f"{'':28}{line}" for line in reports.evidence(report, outcome)]
    lines.append(f"  {reports.summary(report)}")
    put("\n".join(lines) + "\n")
    return report
