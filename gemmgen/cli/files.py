"""Files and streams of commands; their errors are one sentence."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Generator
from pathlib import Path

import click

from gemmgen.base.errors import FileError, GemmgenError, ScheduleError, UsageError
from gemmgen.base.output_file import shown_path, writable, write_file
from gemmgen.base.source import Source
from gemmgen.schedule.read import read_source
from gemmgen.schedule.words import close

KERNEL = ".cu"
"""What the name of an emitted file ends in."""


def read_schedule(path: str) -> Source:
    """The text of a ``.sched`` file, or of standard input for ``-``."""
    if path == "-" and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError("standard input is closed, so no schedule can be read from it")
    if path == "-" or os.path.exists(path):
        return read_source(path)
    from gemmgen.schedule import examples

    known = examples.names()
    name = path.removesuffix(examples.SUFFIX).removeprefix("examples/")
    if path in known:
        return read_source(str(examples.path_of(path)))
    try:
        return read_source(path)
    except UsageError as missing:
        near = close(path, _neighbors(path))
        if name in known:
            hint = f"`gemmgen example {name} -o {Path(path).name}` writes the example of that name"
        elif near or (near := close(name, known)):
            hint = f"did you mean {shown_path(near)}?"
        else:
            raise
        raise UsageError(f"{missing}; {hint}") from None


def _neighbors(path: str) -> list[str]:
    """The schedules in the folder of ``path``, as a user would write them."""
    folder = Path(path).parent
    try:
        found = [file.name for file in folder.iterdir() if file.suffix == ".sched"]
    except (OSError, ValueError):
        return []
    start = "" if folder == Path() else f"{folder}/"
    return [f"{start}{name}" for name in found]


def put(data: str | bytes) -> None:
    """Writes results to standard output."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError("standard output is closed, so nothing can be written to it")
    try:
        click.echo(data, nl=False)
    except BrokenPipeError:
        raise  # the reader closed the pipe: click ends the program quietly
    except OSError as wrong:
        forget_output()
        raise UsageError(f"standard output can't be written: {wrong.strerror}") from None


def put_in(output: str | None, data: str | bytes, *inputs: str) -> None:
    """Writes results to the file ``output``; to standard output for None and ``-``."""
    if output is None or output == "-":
        put(data)
    else:
        write_file(output, data, *inputs)


def complain(error: GemmgenError, end: str = "") -> None:
    """Writes an error to standard error; that of a file has its own place in front."""
    prefix = "" if isinstance(error, ScheduleError | FileError) else "gemmgen: "
    click.echo(f"{prefix}{error}{end}", err=True)


@contextlib.contextmanager
def warnings_as_sentences() -> Generator[None]:
    """Warnings become lines of standard error."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    for each in found:
        click.echo(f"gemmgen: {each.message}", err=True)


def name_of(path: str) -> str:
    """A path as it can be printed."""
    return "<stdin>" if path == "-" else shown_path(path)


def check_svg(path: str, *inputs: str) -> None:
    """Raises ``UsageError`` if ``path`` can't be written, or is not named as an SVG is."""
    if Path(path).suffix != ".svg":
        raise UsageError(f"{shown_path(path)}: a picture is an SVG; name a file that ends in .svg")
    writable(path, *inputs)


def forget_output() -> None:
    """Keeps the interpreter from flushing again, with an error, when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
