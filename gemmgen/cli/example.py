"""``gemmgen example``: the schedules and programs in the package."""

from __future__ import annotations

import click

from gemmgen.cli import options
from gemmgen.cli.files import put_in
from gemmgen.schedule import examples


@click.command("example")
@click.argument("name", required=False)
@options.output
def command(name: str | None, output: str | None) -> None:
    """Print the example NAME; without one, list them, each after those it builds on."""
    if name is None:
        found = (*examples.names(), *examples.pages())
        width = max(map(len, found), default=0)
        text = "".join(f"{one:<{width}}  {examples.about(one)}\n" for one in found)
    else:
        text = examples.path_of(name).read_text(encoding="utf-8")
    put_in(output, text)
