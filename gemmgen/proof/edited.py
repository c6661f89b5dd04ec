"""An edited copy of an emitted file, which is proved in place of it."""

from __future__ import annotations

from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source
from gemmgen.pipeline import Emitted
from gemmgen.schedule.read import printable, read_bytes
from gemmgen.sim.unit import BEGIN, END

HEADING = "// schedule (defaults left out):"
"""The line of an emitted file that the schedule's lines follow."""
_LINE = "//     "


def read_kernel(path: str) -> str:
    """The text of a ``.cu`` file.  Raises ``UsageError`` if it can't be read."""
    data = read_bytes(path)
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        raise UsageError(
            f"{printable(path)} is not a text in UTF-8: byte {wrong.start} is "
            f"{data[wrong.start]:#04x}"
        ) from None


def check_edited(emitted: Emitted, text: str, name: str) -> None:
    """Raises ``UsageError`` if ``text``, called ``name``, is not a copy of the emitted file: the
    layers find the kernel by its marks and call it through its launcher."""
    for part in (BEGIN, END, f"launch_{emitted.name}("):
        if part not in text:
            raise UsageError(
                f"{name} lacks `{part}`: it must be a copy of what `gemmgen emit` writes for this "
                "schedule, with changes between the marks of the kernel"
            )
    for at, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#include"):
            raise UsageError(
                f"{name}:{at} has `{line.strip()}`: the proof takes a kernel with its launcher, "
                "which include nothing; copy the edit to what `gemmgen emit` writes without --main "
                "and --types"
            )


def stated_schedule(text: str, name: str) -> Source:
    """The schedule that an emitted file states in its first lines, each in its own line and column.

    Raises ``UsageError`` if ``text``, called ``name``, states none.
    """
    lines = text.splitlines()
    if HEADING not in lines:
        raise UsageError(
            f"{name} is CUDA C, not a schedule, and has no line `{HEADING}`, after which "
            "`gemmgen emit` states one: pass --schedule FILE, too"
        )
    first = lines.index(HEADING) + 1
    after = next((at for at in range(first, len(lines)) if lines[at][:7] != _LINE), len(lines))
    stated = [f"  {line[2:]}" for line in lines[first:after]]
    return Source("\n".join([*[""] * first, *stated, ""]), name)
