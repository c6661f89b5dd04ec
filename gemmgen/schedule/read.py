"""Reads a schedule's text from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from gemmgen.base.errors import Mistake, ScheduleError, UsageError
from gemmgen.base.source import Source, Span
from gemmgen.schedule.statements import MOST_BYTES

_C = (".cu", ".cuh", ".c", ".h", ".cc", ".cpp", ".hpp", ".cxx", ".ptx")


def read_source(path: str) -> Source:
    """The schedule at ``path``, or standard input for ``-``.

    Raises ``UsageError`` if nothing can be read, or if the file's name is that of CUDA C,
    ``ScheduleError`` if it is not text.
    """
    if Path(path).suffix.lower() in _C:
        raise UsageError(
            f"{printable(path)} is CUDA C, not a schedule: name the .sched file that it was "
            "emitted from"
        )
    name = "<stdin>" if path == "-" else printable(path)
    try:
        data = _bytes(path)
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{name} is a folder, not a schedule; name a file in it") from None
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        raise UsageError(f"{name} can't be read: {reason}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"{name} has more than {MOST_BYTES // 1024} KiB; a schedule is about ten lines"
        )
    return decode(data, name)


def printable(path: str) -> str:
    """A path as it can be printed, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in path)


def read_bytes(path: str, hint: str = "") -> bytes:
    """All bytes of a file; raises ``UsageError``, whose sentence ends with ``hint`` if there is no
    such file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{printable(path)}: no such file{hint}") from None
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        raise UsageError(f"{printable(path)} can't be read: {reason or wrong}") from None


def _bytes(path: str) -> bytes:
    """The file's bytes, truncated if there are too many."""
    if path == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with Path(path).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def decode(data: bytes, name: str) -> Source:
    """The text of UTF-8 bytes, without byte order mark and with plain line ends."""
    try:
        source = Source(data.decode("utf-8"), name).cleaned()
    except UnicodeDecodeError as wrong:
        shown = Source(data.decode("utf-8", errors="replace"), name)
        at = len(data[: wrong.start].decode("utf-8"))
        code = f"0x{data[wrong.start]:02X}"
        hint = "a schedule is plain UTF-8 text; save the file as UTF-8"
        mistake = Mistake(f"the byte {code} is not UTF-8", Span(at, at + 1), hint)
        raise ScheduleError(shown, (mistake,)) from None
    if source.text.startswith("\ufeff"):  # the parser would take it for the first one
        hint = "delete it: a text has at most one, which is not needed"
        mistake = Mistake("a second byte order mark", Span(0, 1), hint)
        raise ScheduleError(source, (mistake,))
    return source
