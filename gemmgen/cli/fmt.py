"""``gemmgen fmt``: schedules in their canonical form."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gemmgen.base.errors import GemmgenError
from gemmgen.base.output_file import writable, write_file
from gemmgen.cli.files import complain, name_of, put, read_schedule
from gemmgen.cli.unified_diff import unified
from gemmgen.language import fmt_source


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 and a diff if one differs.")
def command(files: Sequence[str], check: bool) -> None:
    """Rewrite each FILE in the order of the passes, arguments in the order of `gemmgen help`,
    aligned, comments kept; - is written to standard output.

    Nothing is written if one of them has a mistake.
    """
    found: list[tuple[str, str, str]] = []
    worst = 0
    for path in files:
        try:
            before, after = _formatted(path)
        except GemmgenError as error:
            worst = max(worst, error.exit_code)
            complain(error, "\n")
            continue
        found.append((path, before, after))
    if not worst:
        worst = _differences(found) if check else _written(found)
    click.get_current_context().exit(worst)


def _formatted(path: str) -> tuple[str, str]:
    """A schedule's text and its formatted text; line ends and a byte order mark count too."""
    source = read_schedule(path)
    after = fmt_source(source)
    if path == "-":
        return source.text, after
    writable(path)
    with open(path, "rb") as file:
        return file.read().decode("utf-8"), after


def _differences(found: Sequence[tuple[str, str, str]]) -> int:
    """Prints the differences of files that aren't formatted; returns 1 if there are any."""
    wrong = 0
    for path, before, after in found:
        name = name_of(path)
        difference = unified(before, after, name, f"{name} formatted")
        if difference:
            put(difference)
            wrong = 1
    return wrong


def _written(found: Sequence[tuple[str, str, str]]) -> int:
    for path, before, after in found:
        if path == "-":
            put(after)
        elif before != after:
            write_file(path, after)
            click.echo(f"{name_of(path)}: formatted", err=True)
    return 0
