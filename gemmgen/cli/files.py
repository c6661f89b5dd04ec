"""Files of commands: errors are one sentence, and a file is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Generator
from pathlib import Path

import click

from gemmgen.base.errors import FileError, GemmgenError, ScheduleError, UsageError
from gemmgen.base.source import Source, shown
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


def shown_path(path: str) -> str:
    """A path as messages quote it, without control characters."""
    text = click.format_filename(path)
    return text if text.isprintable() else shown(text)


def writable(path: str, *inputs: str) -> Path:
    """The regular file that ``path`` is or will be; raises ``UsageError`` if it can't be."""
    name = shown_path(path)
    try:
        target = Path(path).resolve()
        if target.is_symlink():  # a cycle of links: Python 3.13 returns one, others raise
            raise UsageError(f"{name} can't be written: it is a link that leads to itself")
        if target.is_dir() or path.endswith("/"):
            raise UsageError(f"{name} is a folder; name a file in it")
        if Path(path).is_symlink() and target.parent != Path(path).parent.resolve():
            raise UsageError(f"{name} is a link out of its folder; name {shown_path(str(target))}")
        if not target.parent.is_dir():
            raise UsageError(f"{name} can't be written: there is no folder {target.parent}")
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            raise UsageError(f"{name} is not a regular file; leave -o out for standard output")
        if target.exists() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
            raise UsageError(f"{name} can't be written: it is read-only")
        for other in filter(os.path.exists, inputs):
            if other != "-" and target.exists() and target.samefile(other):
                raise UsageError(f"{name} is the schedule itself; choose another output")
    except (OSError, ValueError, RuntimeError) as wrong:
        raise UsageError(f"{name} can't be written: {_reason(wrong)}") from None
    return target


def check_svg(path: str, *inputs: str) -> None:
    """Raises ``UsageError`` if ``path`` can't be written, or is not named as an SVG is."""
    if Path(path).suffix != ".svg":
        raise UsageError(f"{shown_path(path)}: a picture is an SVG; name a file that ends in .svg")
    writable(path, *inputs)


def write_file(path: str, data: str | bytes, *inputs: str) -> None:
    """Writes all of ``data`` or nothing; ``inputs`` are files that it must not replace."""
    target = writable(path, *inputs)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".gemmgen-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data.encode() if isinstance(data, str) else data)
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as wrong:
        raise UsageError(f"{shown_path(path)} can't be written: {_reason(wrong)}") from None


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, else those of any new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(wrong: Exception) -> str:
    reason = wrong.strerror if isinstance(wrong, OSError) else None
    return reason or str(wrong)


def forget_output() -> None:
    """Keeps the interpreter from flushing again, with an error, when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
