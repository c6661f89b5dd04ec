"""``gemmgen example``: the schedules and programs in the package."""

from __future__ import annotations

import click

from gemmgen.cli.files import put, write_file
from gemmgen.schedule import examples


@click.command("example")
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="OUT", help="A file in place of standard output.")
def command(name: str | None, output: str | None) -> None:
    """Print the example NAME; without one, list them in ladder order."""
    if name is None:
        found = (*examples.names(), *examples.pages())
        width = max(map(len, found), default=0)
        text = "".join(f"{one:<{width}}  {examples.about(one)}\n" for one in found)
    else:
        text = examples.path_of(name).read_text(encoding="utf-8")
    if output is None or output == "-":
        put(text)
    else:
        write_file(output, text)
