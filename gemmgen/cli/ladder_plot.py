"""The rows of ``ladder --json`` as a chart, those of this run or of an earlier one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path, write_file
from gemmgen.draw.marks import Drawing
from gemmgen.draw.measured import CUBLAS, Speed, chart
from gemmgen.draw.svg import svg_of
from gemmgen.schedule.examples import LADDER
from gemmgen.schedule.read import read_bytes

Row = dict[str, Any]
_ORDER = re.compile(r" [A-Z]\[[^]]*\]")


def read_rows(path: str) -> list[Row]:
    """Raises ``UsageError`` for a file that ``ladder --json`` or ``bench --json`` did not write."""
    name = shown_path(path)
    try:
        found: object = json.loads(read_bytes(path))
    except UnicodeDecodeError:
        raise UsageError(f"{name} can't be read: it is not UTF-8 text") from None
    except json.JSONDecodeError as wrong:
        raise UsageError(f"{name}:{wrong.lineno}:{wrong.colno}: not JSON: {wrong.msg}") from None
    rows = cast(list[object], found) if isinstance(found, list) else []
    if not rows or not all(isinstance(row, dict) and "name" in row for row in rows):
        raise UsageError(f"{name} holds no rows of `gemmgen ladder --json`")
    return cast(list[Row], rows)


def write_plot(path: str, rows: Sequence[Row], *inputs: str) -> None:
    """Writes the chart of ``rows``; raises ``UsageError`` if none of them was timed."""
    write_file(path, svg_of(plotted(rows)), *inputs)


def plotted(rows: Sequence[Row]) -> Drawing:
    """The chart of ``rows``, rungs in the ladder's order; raises ``UsageError`` if none of them was
    timed."""
    speeds = tuple(_speeds(sorted(rows, key=_rung)))
    if not speeds:
        raise UsageError("--plot: none of the rows has a time")
    return chart(speeds, f"Measured on {_where(rows)}")


def _rung(row: Row) -> int:
    """Its place on the ladder; what is not a rung comes after all of them, in the order given."""
    return LADDER.index(row["name"]) if row["name"] in LADDER else len(LADDER)


def _speeds(rows: Sequence[Row]) -> Iterator[Speed]:
    """What was timed and found right; cuBLAS without the storage order that its name has, and
    others without theirs if no two would have one name."""
    names = {str(row["name"]) for row in rows}
    short = Counter(_ORDER.sub("", name) for name in names)
    for row in rows:
        tflops, sizes = row.get("tflops"), row.get("shape")
        if isinstance(tflops, int | float) and isinstance(sizes, dict) and row.get("checked", True):
            extents = [str(size) for size in cast(dict[str, int], sizes).values()]
            size = extents[0] if len(set(extents)) == 1 else " x ".join(extents)
            name, brief = str(row["name"]), _ORDER.sub("", str(row["name"]))
            name = brief if short[brief] == 1 else name
            share = cast(float | None, row.get("share"))
            yield Speed(CUBLAS if name.startswith(CUBLAS) else name, size, float(tflops), share)


def _where(rows: Sequence[Row]) -> str:
    return " and ".join(dict.fromkeys(str(row["gpu"]) for row in rows if row.get("gpu")))
