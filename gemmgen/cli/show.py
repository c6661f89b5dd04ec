"""``gemmgen show``: the program after each pass, and as each level of the IR has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.cli import options
from gemmgen.cli.files import put
from gemmgen.cli.unified_diff import unified
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import print_ir
from gemmgen.pipeline import expand, make_concrete, rewrite

STAGES: dict[str, Callable[[Program], object]] = {
    "declared": lambda program: program,
    "expanded": expand,
    "lowered": make_concrete,
}


@click.command("show")
@click.argument("file")
@click.option("--pass", "name", metavar="NAME", help="This pass only; gemm is the naive program.")
@click.option("--diff", is_flag=True, help="Print what each pass changed instead of the programs.")
@click.option(
    "--stage",
    type=click.Choice(tuple(STAGES)),
    help="The last program only, or that of --pass: as declared, with its operations placed in"
    " time, or as one thread's code.",
)
@options.arch
@options.settings
def command(
    file: str,
    name: str | None,
    diff: bool,
    stage: str | None,
    arch: str | None,
    settings: Sequence[options.Setting],
) -> None:
    """Print the program that FILE starts from, and the program after each of its passes.

    The comment after # in a line is the directive that shaped it.
    """
    steps = rewrite(options.load(file, settings, arch))
    names = [step.directive for step in steps]
    if name is not None and name not in names:
        raise UsageError(
            f"{shown(name)} is not a pass of this schedule; there are {', '.join(names)}"
        )
    level = STAGES[stage or "declared"]
    if stage is not None and not diff:
        put(print_ir(level(steps[names.index(name or names[-1])].program)))
        return
    texts = [print_ir(level(step.program)) for step in steps]
    parts: list[str] = []
    for at, step in enumerate(names):
        if name in (None, step):
            if diff and at:
                parts.append(unified(texts[at - 1], texts[at], names[at - 1], step))
            else:
                parts.append(f"{click.style('== ' + step, bold=True)}\n{texts[at]}")
    put("\n".join(parts))
