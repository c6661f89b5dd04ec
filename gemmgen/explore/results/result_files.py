"""Measured results as a JSON file, for other machines; a file's text is checked before use.

{"format": 1, "results": [{"schedule": "gemm ...", "shape": [2048, 2304, 768], ...}]}
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, cast

from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source, value_shown
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.results.code_hash import DIGITS
from gemmgen.explore.results.measured_result import (
    ORIGINS,
    MachineInfo,
    MeasuredResult,
    ProblemKey,
    dated,
)
from gemmgen.ir.interface import INT_MAX
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Gemm, Schedule
from gemmgen.schedule.roles import batches, roles

FORMAT = 1
MOST_BYTES = 64 << 20
MOST_CHARACTERS = 20_000
"""Of a schedule."""
FASTEST = 1e17
"""Floating-point operations a second that no GPU reaches."""
LONGEST = 1e6
"""Seconds of a launch."""
_KEYS = (
    *("schedule", "shape", "pitches", "gpu", "arch", "driver", "cuda"),
    *("seconds", "vendor", "date", "origin", "code", "version"),
)


def to_json(results: Iterable[MeasuredResult]) -> str:
    """A file's text, one result a line."""
    lines = ",\n".join(f"  {json.dumps(_object(result))}" for result in results)
    return f'{{"format": {FORMAT}, "results": [\n{lines}\n]}}\n'


def _object(result: MeasuredResult) -> dict[str, object]:
    problem, machine = result.problem, result.machine
    return {
        "schedule": result.schedule,
        "shape": list(problem.shape),
        "pitches": list(problem.pitches),
        "gpu": machine.gpu,
        "arch": machine.arch,
        "driver": machine.driver,
        "cuda": machine.cuda,
        "seconds": result.seconds,
        "vendor": result.vendor,
        "date": result.date,
        "origin": result.origin,
        "code": result.code,
        "version": result.version,
    }


def from_json(data: bytes, name: str) -> list[MeasuredResult]:
    """The results of a file, all of them or none, with the origin ``imported``.

    Raises ``UsageError`` or ``ScheduleError`` with the place of the first mistake.
    """
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"{name} has {len(data):,} bytes, and a file of results at most {MOST_BYTES:,}"
        )
    found = _parsed(data, name)
    if not isinstance(found, dict):
        raise UsageError(f"{name}: a file of results is an object, {_FORM}")
    found = cast(dict[str, object], found)
    version, results = found.get("format"), found.get("results")
    if type(version) is int and version > FORMAT:
        raise UsageError(
            f"{name}: format {value_shown(version)} is newer than {FORMAT}, which this gemmgen "
            "reads: update gemmgen, or export with this version"
        )
    if version != FORMAT or type(version) is not int or not isinstance(results, list):
        raise UsageError(f"{name}: a file of results has these keys: {_FORM}")
    if unknown := found.keys() - {"format", "results"}:
        raise UsageError(f"{name}: unknown key {value_shown(min(unknown))}; {_FORM}")
    each = enumerate(cast(list[object], results))
    return [_ResultReader(f"{name}: results[{at}]", value).result() for at, value in each]


_FORM = '{"format": 1, "results": [...]}, as `gemmgen cache export` writes it'


def _parsed(data: bytes, name: str) -> object:
    """The JSON value; its errors have a line and a column."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise UsageError(f"{name}: the key {value_shown(twice)} is given twice in an object")
        return found

    def constant(text: str) -> NoReturn:
        raise UsageError(f"{name}: {text} is not a number of JSON")

    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=once, parse_constant=constant)
    except UnicodeDecodeError as wrong:
        raise UsageError(f"{name} is not UTF-8 text: byte {wrong.start:,}") from None
    except json.JSONDecodeError as wrong:
        place = f"{name}:{wrong.lineno}:{wrong.colno}"
        raise UsageError(f"{place}: this is not JSON: {wrong.msg}") from None
    except (RecursionError, ValueError):  # too deep, or an integer with thousands of digits
        raise UsageError(f"{name} is not a file of results: {_FORM}") from None


class _ResultReader:
    """One object of ``results``, whose place is named in errors."""

    def __init__(self, place: str, value: object) -> None:
        self._place = place
        if not isinstance(value, dict):
            raise UsageError(f"{place}: a result is an object, not {value_shown(value)}")
        self._value = cast(dict[str, object], value)
        missing = [key for key in _KEYS if key not in self._value]
        unknown = sorted(self._value.keys() - set(_KEYS))
        if missing or unknown:
            what = f"lacks the key {missing[0]!r}" if missing else ""
            what = what or f"has an unknown key {value_shown(unknown[0])}"
            raise UsageError(f"{place} {what}: the keys are {', '.join(_KEYS)}")

    def result(self) -> MeasuredResult:
        schedule = self._schedule()
        problem = self._problem(schedule)
        flops = 2.0 * math.prod(problem.shape)
        seconds = self._seconds("seconds", flops)
        vendor = None if self._value["vendor"] is None else self._seconds("vendor", flops)
        return MeasuredResult(
            problem=problem,
            schedule=format_schedule(schedule),
            machine=MachineInfo(
                self._text("gpu", r"[ -~]{1,100}", "the name that a driver reports"),
                self._text("arch", r"sm_[0-9]{2,3}a?", "an architecture, sm_90 say"),
                self._text("driver", _VERSION, "a version, 580.159.04 say"),
                self._text("cuda", _VERSION, "a version, 13.0 say"),
            ),
            seconds=seconds,
            vendor=vendor,
            date=self._date(),
            origin=self._origin(),
            code=self._text("code", rf"[0-9a-f]{{{DIGITS}}}", f"{DIGITS} digits 0-9 and a-f"),
            version=self._text("version", r"[ -~]{1,40}", "a version of gemmgen"),
        )

    def _wrong(self, key: str, wanted: str) -> NoReturn:
        raise UsageError(f"{self._place}.{key} = {value_shown(self._value[key])}: {wanted}")

    def _text(self, key: str, pattern: str, wanted: str) -> str:
        value = self._value[key]
        if not isinstance(value, str) or re.fullmatch(pattern, value, re.ASCII) is None:
            self._wrong(key, f"it is {wanted}")
        return value

    def _schedule(self) -> Schedule:
        """In canonical names; it compiles."""
        text = self._value["schedule"]
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
            self._wrong("schedule", f"it is a text of at most {MOST_CHARACTERS:,} characters")
        written = parse_schedule(Source(text, f"{self._place}.schedule"))
        compile_schedule(written)
        return canonical(written)

    def _problem(self, schedule: Schedule) -> ProblemKey:
        shape = self._sizes("shape", _letters(schedule.gemm), 1)
        given = self._sizes("pitches", ("A", "B", "C"), 0)
        pitches = [pair for pair in zip("ABC", given, strict=True) if pair[1]]
        try:
            return ProblemKey.checked(schedule, shape, pitches)
        except UsageError as wrong:
            raise UsageError(f"{self._place}.pitches: {wrong}") from None

    def _sizes(self, key: str, names: tuple[str, ...], least: int) -> tuple[int, ...]:
        value = self._value[key]
        wanted = f"it is a list of {len(names)} integers from {least} to {INT_MAX}, of "
        if not isinstance(value, list) or len(cast(list[object], value)) != len(names):
            self._wrong(key, wanted + ", ".join(names))
        found = cast(list[Any], value)
        if not all(type(x) is int and least <= x <= INT_MAX for x in found):
            self._wrong(key, wanted + ", ".join(names))
        return tuple(found)

    def _seconds(self, key: str, flops: float) -> float:
        value = self._value[key]
        if type(value) not in (int, float) or not 0 < cast(float, value) <= LONGEST:
            self._wrong(key, f"it is a number of seconds above 0, at most {LONGEST:,.0f}")
        seconds = float(cast(float, value))
        if flops / seconds > FASTEST:
            self._wrong(
                key,
                f"{flops:,.0f} operations in that time are {flops / seconds / 1e12:,.0f} TFLOP/s",
            )
        return seconds

    def _date(self) -> str:
        value = self._value["date"]
        try:
            found = datetime.fromisoformat(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if found is None:
            self._wrong("date", "it is a date in ISO format, 2026-11-20T12:00:00+00:00 say")
        try:
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (OverflowError, ValueError):
            self._wrong("date", "it is out of range")
        if found > datetime.now(UTC) + timedelta(days=1):
            self._wrong("date", "it is in the future")
        return dated(found)

    def _origin(self) -> Any:
        if self._value["origin"] not in ORIGINS:
            self._wrong("origin", f"it is one of {', '.join(ORIGINS)}")
        return "imported"


_VERSION = r"[0-9A-Za-z.+_-]{0,40}"


def _letters(gemm: Gemm) -> tuple[str, ...]:
    return (*roles(gemm), *batches(gemm))


__all__ = ["from_json", "to_json"]
