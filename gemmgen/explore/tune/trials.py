"""Trials: the results of points that were tried, and the file that keeps them.

A trials file is JSON Lines: a header with the schedule, shapes and GPU, then one line for each
point, written at once.  ``--resume`` continues from it and ignores a truncated line.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Literal, cast, get_args

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
            self._file.write(_line(_as_json(trial)))
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read(path: Path) -> tuple[About, tuple[Trial, ...]]:
    """The header and trials of a file, of each point the last line; ``UsageError`` if it is no
    trials file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        head = cast(dict[str, object], json.loads(lines[0]))
        about = About(
            gemmgen=str(head["gemmgen"]),
            code=str(head["code"]),
            schedule=str(head["schedule"]),
            sets=tuple((key, tuple(values)) for key, values in _pairs(head["sets"])),
            shapes=tuple(tuple(shape) for shape in cast(list[list[int]], head["shapes"])),
            gpu=str(head["gpu"]),
            arch=str(head["arch"]),
        )
    except (OSError, *_DAMAGED) as wrong:
        raise UsageError(f"{path} is no file of trials, so nothing can be resumed") from wrong
    found: dict[int, Trial] = {}
    for line in lines[1:]:
        trial = _trial(line, len(about.shapes))
        if trial is not None:
            found[trial.number] = trial
    return about, tuple(found.values())


def _trial(line: str, shapes: int) -> Trial | None:
    """A line's trial of ``shapes`` shapes; None for a truncated or damaged line."""
    try:
        found = cast(dict[str, object], json.loads(line))
        status, share = found["status"], found["share"]
        if status not in get_args(Status):
            return None
        return Trial(
            number=_whole(found["number"]),
            settings=tuple(_settings(found["settings"])),
            status=cast(Status, status),
            code=_text(found["code"]),
            registers=_count(found["registers"]),
            spills=_count(found["spills"]),
            ms=_times(found["ms"], (0, shapes)),
            share=None if share is None else _times(share, (shapes,)),
            reason=_text(found["reason"]),
        )
    except _DAMAGED:
        return None


_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a malformed line raises."""


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} counts nothing")
    return value


def _count(value: object) -> int | None:
    return None if value is None else _whole(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _times(value: object, counts: tuple[int, ...]) -> tuple[float, ...]:
    """Positive numbers; their count must be one of ``counts``."""
    found = tuple(cast(list[object], value)) if isinstance(value, list) else ()
    if not isinstance(value, list) or len(found) not in counts:
        raise ValueError(f"{value!r} is no list of so many times")
    if not all(isinstance(x, int | float) and 0 < x < math.inf for x in found):
        raise ValueError(f"{value!r} holds what is no time")
    return cast(tuple[float, ...], found)


def _settings(values: object) -> list[tuple[str, Value]]:
    found = list(cast(Mapping[str, object], values).items())
    if not all(isinstance(value, int | str) for _, value in found):
        raise ValueError(f"{values!r} fixes nothing")
    return cast(list[tuple[str, Value]], found)


def _pairs(values: object) -> list[tuple[str, list[Value]]]:
    return list(cast(Mapping[str, list[Value]], values).items())


def _as_json(value: About | Trial) -> dict[str, object]:
    found: dict[str, object] = asdict(value)
    for key in ("sets", "settings"):
        if key in found:
            found[key] = dict(cast(Sequence[tuple[str, object]], found[key]))
    return found


def _line(values: Mapping[str, object]) -> str:
    return json.dumps(values) + "\n"


def _opened(path: Path, begin: Sequence[About | Trial]) -> IO[str]:
    """The file with these lines, open for appending; an earlier file is replaced atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text("".join(_line(_as_json(one)) for one in begin), "utf-8", newline="\n")
        os.replace(draft, path)
        return path.open("a", encoding="utf-8", newline="\n")
    except OSError as wrong:
        draft.unlink(missing_ok=True)
        raise UsageError(f"{path} can't be written: {wrong.strerror}") from None
