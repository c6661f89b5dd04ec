"""The group ``gemmgen``: imports a command when it is called, and prints errors as sentences.

Exit codes: 0 success, 1 a check failed, 2 the input is wrong, 3 it can't be checked here.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any, cast

import click

from gemmgen import __version__
from gemmgen.base.errors import GemmgenError, UsageError
from gemmgen.base.source import shown
from gemmgen.cli.files import complain, forget_output
from gemmgen.cli.interruptions import INTERRUPTED
from gemmgen.schedule.words import close

OBJECTS = 100_000
"""How many more objects there are before the next search for cycles.  Imports and a compilation
make many objects and hardly a cycle: searches as often as by default are 3% of ``emit``."""

COMMANDS = {
    "emit": "Print a schedule's kernel as CUDA C.",
    "check": "Check schedules, and report every mistake.",
    "fmt": "Rewrite schedules in the order of the passes, aligned, comments kept.",
    "show": "Print the program after each pass, or what each pass changed.",
    "verify": "Prove kernels right in all layers that this machine can run.",
    "prove": "Prove facts about kernels for all sizes at once.",
    "fuzz": "Verify random schedules, to find bugs in gemmgen.",
    "bench": "Time kernels against cuBLAS.",
    "ladder": "Time a ladder of schedules, as a table.",
    "suggest": "Write a schedule for a shape, with the reasons.",
    "tune": "Find the fastest schedule for shapes or of a search space, by measuring.",
    "library": "Write kernels for a set of products, with a dispatcher, for CMake.",
    "cache": "List, explain, export, import and clear measured results.",
    "explain": "Count a schedule's memory accesses, and report what bounds it.",
    "draw": "Draw a schedule: its tiles, its threads, their registers.",
    "diff": "Compare two schedules: statements, text and explain's figures.",
    "help": "Explain the statements of the schedule language.",
    "example": "List the examples, or print one.",
}
"""Each command's file in this folder, and its line in ``gemmgen --help``."""


class Commands(click.Group):
    """Finds a command in the file of its name; errors become a message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gemmgen.cli.{cmd_name}")
        command = cast(click.Command, module.command)
        if same := _schedules(command):
            command.params.append(
                click.Option(["--schedule"], metavar="FILE", expose_value=False, help=same)
            )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = close(name, COMMANDS)
            hint = f"Did you mean '{near}'?" if near else f"There are {', '.join(COMMANDS)}."
            ctx.fail(f"No such command '{shown(name)}'. {hint}")
        _, command, rest = super().resolve_command(ctx, args)
        return name, command, _positional(rest) if name != "emit" else rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except GemmgenError as error:
            complain(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("gemmgen: interrupted", err=True)
            ctx.exit(INTERRUPTED)

    def main(self, *args: Any, **extra: Any) -> Any:
        """As click's; a failure to write a help text is a sentence too."""
        gc.set_threshold(OBJECTS)
        try:
            return super().main(*args, **extra)
        except OSError as wrong:
            if wrong.filename is not None:  # not an error of a stream
                raise
            forget_output()
            click.echo(f"gemmgen: standard output can't be written: {wrong.strerror}", err=True)
            sys.exit(UsageError.exit_code)


def _schedules(command: click.Command) -> str:
    """What the option --schedule means; nothing for a command that takes no schedule, or has
    the option."""
    arguments = {p.name for p in command.params if isinstance(p, click.Argument)}
    options = {p.name for p in command.params if isinstance(p, click.Option)}
    if options & {"schedule", "named"}:
        return ""
    if "before" in arguments:
        return "BEFORE, and given again AFTER."
    return "The same as FILE." if arguments & {"file", "files"} else ""


def _positional(args: list[str]) -> list[str]:
    """``--schedule FILE`` as the argument FILE."""
    found: list[str] = []
    for at, word in enumerate(args):
        if word == "--":
            return [*found, *args[at:]]
        if word.startswith("--schedule="):
            found.append(word.removeprefix("--schedule="))
        elif word != "--schedule" or at + 1 == len(args):
            found.append(word)
    return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gemmgen")
def main() -> None:
    """Short schedules to fast, readable, verified CUDA C GEMM kernels.

    FILE is a .sched file, or - for standard input.  Results go to standard output, all else to
    standard error.  Exit codes: 0 success, 1 a check failed, 2 the input is wrong, 3 it can't be
    checked here.
    """
