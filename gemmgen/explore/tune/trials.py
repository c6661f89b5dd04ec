"""Trials: the results of points that were tried, and the file that keeps them.

A trials file is JSON Lines: a header with the schedule, shapes and GPU, then one line for each
point, written at once.  ``--resume`` continues from it and ignores a truncated line.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.explore.tune.space import Settings, Value

Status = Literal["timed", "gated", "failed", "refused", "wrong", "crashed"]
"""``timed``: right, and measured.  ``gated``: it does not meet a ``require`` line.  ``failed``: it
did not compile.  ``refused``: its launcher does not take the shape.  ``wrong``: its result is
wrong.  ``crashed``: the GPU's process ended, or did not answer."""


@record
class Trial:
    """One point: ``code`` names its kernel's code, ``ms`` and ``share`` of cuBLAS are per shape.

    ``share`` is None if cuBLAS has no such call; ``spills`` counts bytes.
    """

    number: int
    settings: Settings
    status: Status
    code: str = ""
    registers: int | None = None
    spills: int | None = None
    ms: tuple[float, ...] = ()
    share: tuple[float, ...] | None = None
    reason: str = ""


@record
class About:
    """The header of a trials file: trials of another schedule, shape or GPU are not resumed.

    ``code`` is the code hash of the first legal point: it differs if gemmgen emits other code.
    """

    gemmgen: str
    code: str
    schedule: str
    sets: tuple[tuple[str, tuple[Value, ...]], ...]
    shapes: tuple[tuple[int, ...], ...]
    gpu: str
    arch: str

    def differs(self, other: About) -> str | None:
        """The first difference from ``other``, in words, or None."""
        for name, mine in asdict(self).items():
            theirs = getattr(other, name)
            if mine != theirs:
                shown = f"{theirs!r}, not {mine!r}" if len(f"{theirs}{mine}") < 80 else ""
                return f"{name}{' ' if shown else ''}{shown}"
        return None


class Log:
    """Writes a trials file; without a path it writes nothing."""

    def __init__(self, path: Path | None, about: About, *, resume: bool = False):
        self.known: tuple[Trial, ...] = ()
        self._file: IO[str] | None = None
        if path is None:
            return
        old = read(path) if resume and path.exists() else None
        if old is not None:
            unlike = about.differs(old[0])
            if unlike:
                raise UsageError(
                    f"{path} has trials of something else ({unlike}): leave --resume out, or name "
                    "another file"
                )
            self.known = old[1]
        self._file = _opened(path, [about, *self.known])

    def add(self, trial: Trial) -> None:
        """Writes the trial at once, so that it survives a crash of this process."""
        if self._file is not None:
            self._file.write(_line(trial))
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read(path: Path) -> tuple[About, tuple[Trial, ...]]:
    """The header and trials of a file, of each point the last line; ``UsageError`` if it is no
    trials file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        head: dict[str, Any] = json.loads(lines[0])
        head["sets"] = tuple((key, tuple(values)) for key, values in head["sets"].items())
        head["shapes"] = tuple(tuple(shape) for shape in head["shapes"])
        about = About(*(head[field.name] for field in fields(About)))
    except (OSError, *_DAMAGED) as wrong:
        raise UsageError(f"{path} is not a file of trials, so nothing can be resumed") from wrong
    found = (_trial(line, len(about.shapes)) for line in lines[1:])
    return about, tuple({trial.number: trial for trial in found if trial is not None}.values())


def _trial(line: str, shapes: int) -> Trial | None:
    """A line's trial of ``shapes`` shapes; None for a truncated or damaged line."""
    try:
        found: dict[str, Any] = json.loads(line)
        settings, ms, share = tuple(found["settings"].items()), found["ms"], found["share"]
        counts = [
            found["number"],
            *(found[x] for x in ("registers", "spills") if found[x] is not None),
        ]
        right = (
            all(type(count) is int and count >= 0 for count in counts)
            and all(isinstance(value, int | str) for _, value in settings)
            and all(isinstance(found[x], str) for x in ("code", "reason"))
            and found["status"] in get_args(Status)
            and _are_times(ms, (0, shapes))
            and (share is None or _are_times(share, (shapes,)))
        )
        found |= {"settings": settings, "ms": tuple(ms), "share": share and tuple(share)}
        return Trial(*(found[field.name] for field in fields(Trial))) if right else None
    except _DAMAGED:
        return None


_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a malformed line raises."""


def _are_times(values: object, counts: tuple[int, ...]) -> bool:
    """Whether ``values`` is a list of this many positive numbers."""
    if not isinstance(values, list):
        return False
    found = cast(list[object], values)
    right = (isinstance(x, int | float) and 0 < x < math.inf for x in found)
    return len(found) in counts and all(right)


def _line(value: About | Trial) -> str:
    found = asdict(value)
    for key in found.keys() & {"sets", "settings"}:
        found[key] = dict(found[key])
    return json.dumps(found) + "\n"


def _opened(path: Path, begin: Sequence[About | Trial]) -> IO[str]:
    """The file with these lines, open for appending; an earlier file is replaced atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text("".join(map(_line, begin)), "utf-8", newline="\n")
        os.replace(draft, path)
        return path.open("a", encoding="utf-8", newline="\n")
    except OSError as wrong:
        draft.unlink(missing_ok=True)
        raise UsageError(f"{path} can't be written: {wrong.strerror}") from None
