"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.base.source import Source
from gemmgen.cli.files import read_schedule
from gemmgen.cli.shape_option import HELP, METAVAR, shape
from gemmgen.ir.target import TARGETS
from gemmgen.language import parse_schedule

if TYPE_CHECKING:
    from gemmgen.pipeline import Emitted
    from gemmgen.schedule.model import Schedule

Setting = tuple[str, str]


def setting(text: str) -> Setting:
    """``tile.m=128``: the value of a set."""
    key, equals, chosen = (part.strip() for part in text.partition("="))
    if not (key and equals and chosen):
        raise click.BadParameter("a setting is KEY=VALUE, tile.m=128 say")
    return key, chosen


arch = click.option("--arch", type=click.Choice(list(TARGETS)), help="Replaces the target line.")
settings = click.option(
    "--set",
    "settings",
    type=setting,
    metavar="KEY=VALUE",
    multiple=True,
    help="Replaces a value of the schedule, or chooses one of a set: --set tile.m=128.",
)
output = click.option("-o", "--output", metavar="OUT", help="A file in place of standard output.")
shapes = click.option(
    "--shape",
    "shapes",
    type=shape,
    metavar=METAVAR,
    multiple=True,
    help=f"{HELP}; may be given several times.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="For scripts.")


def parse(source: Source, settings: Sequence[Setting], arch: str | None) -> Schedule:
    """The schedule of a text, with its sets fixed and its target replaced."""
    keys = [key for key, _ in settings]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"--set {key} is given twice; once is enough")
    schedule = parse_schedule(source, tuple(settings))
    return replace(schedule, target=arch) if arch else schedule


def load(path: str, settings: Sequence[Setting] = (), arch: str | None = None) -> Schedule:
    """The schedule at ``path``."""
    return parse(read_schedule(path), settings, arch)


def unchecked(emitted: Emitted) -> str:
    """Why the ``require`` lines were not checked; empty if they were, or if there are none.

    Raises ``ScheduleError`` for lines that do not hold.
    """
    if not emitted.schedule.requires:
        return ""
    from gemmgen.api.kernels import check_requirements

    try:
        check_requirements(emitted)
    except CannotCheck as missing:
        return str(missing)
    return ""
