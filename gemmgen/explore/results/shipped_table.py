"""The table of results that ships with gemmgen: a JSON file, read like a store.

``benchmarks/shipped_results.py`` writes it from measurements under ``docs/data``.  It has one
object for each problem and machine, whose rows are a shape, the number of a schedule, seconds and
the vendor's seconds; schedules come with the hash of their code.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gemmgen.base.record import record
from gemmgen.explore.results.measured_result import MachineInfo, MeasuredResult, ProblemKey
from gemmgen.explore.results.result_rows import shape_of_text
from gemmgen.ir.launch_shape import Shape

Entry = tuple[dict[str, Any], list[Any]]
"""An object of the file and one of its rows."""
FILE = Path(__file__).parent / "shipped.json"


@record
class ShippedTable:
    """``groups`` are the objects of the file."""

    groups: tuple[dict[str, Any], ...]

    def shapes(self, problem: str) -> dict[str, list[Shape]]:
        """As ``Database.shapes``."""
        found: dict[str, list[Shape]] = {}
        for gpu, shape in self._by_shape.get(problem, {}):
            found.setdefault(gpu, []).append(shape)
        return found

    def fastest(self, problem: ProblemKey, gpu: str, most: int) -> list[MeasuredResult]:
        """As ``Database.fastest``."""
        rows = self._by_shape.get(problem.text, {}).get((gpu, problem.shape), [])
        return [_result(group, row) for group, row in rows[:most]]

    def all(self) -> list[MeasuredResult]:
        return [_result(group, row) for group in self.groups for row in group["rows"]]

    @cached_property
    def _by_shape(
        self,
    ) -> dict[str, dict[tuple[str, Shape], list[Entry]]]:
        found: dict[str, dict[tuple[str, Shape], list[Entry]]] = {}
        for group in self.groups:
            shapes = found.setdefault(group["problem"], {})
            for row in group["rows"]:
                key = group["gpu"], shape_of_text(row[0])
                shapes.setdefault(key, []).append((group, row))
        for shapes in found.values():
            for rows in shapes.values():
                rows.sort(key=_seconds)
        return found


def _seconds(entry: Entry) -> float:
    return entry[1][2]


@cache
def shipped() -> ShippedTable:
    """The table of this version."""
    return ShippedTable(tuple(json.loads(FILE.read_text(encoding="utf-8"))))


def _result(group: dict[str, Any], row: list[Any]) -> MeasuredResult:
    shape, number, seconds, vendor = row
    text, code = group["schedules"][number]
    return MeasuredResult(
        ProblemKey(group["problem"], shape_of_text(shape)),
        text,
        MachineInfo(group["gpu"], group["arch"], group["driver"], group["cuda"]),
        seconds,
        vendor,
        group["date"],
        "shipped",
        code,
        group["version"],
    )
