"""A ladder without a GPU: the counts of each rung, and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.cli.ladder_rungs import Rung

if TYPE_CHECKING:
    from gemmgen.analyze.explain import Explanation
    from gemmgen.analyze.figures import Json
    from gemmgen.gpu.gpus import Gpu

HEADING = (
    *("kernel", "global reads", "limited by", "at most TFLOP/s"),
    *("registers", "spills", "occupancy", "bank conflicts"),
)


@record
class Counted:
    """A rung and its ``explain``; None with the reason if it can't be explained."""

    rung: Rung
    explanation: Explanation | None
    note: str = ""


def count(rungs: Sequence[Rung], size: int, gpu: Gpu) -> tuple[Counted, ...]:
    """Every rung at ``size`` cubed on ``gpu``."""
    from gemmgen.analyze.explain import explain
    from gemmgen.cli.progress import Bar

    found: list[Counted] = []
    with Bar("counting") as bar:
        for rung in rungs:
            try:
                explained = explain(rung.kernel.schedule, (size, size, size), gpu)
                found.append(Counted(rung, explained))
            except UsageError as refused:
                found.append(Counted(rung, None, str(refused)))
            bar(len(found), len(rungs))
    return tuple(found)


def limits(rungs: Sequence[Rung], size: int, gpu: Gpu) -> dict[str, str]:
    """What bounds each rung at ``size`` cubed, by the roofline of ``explain``."""
    return {
        each.rung.name: each.explanation.roofline.binding.name
        for each in count(rungs, size, gpu)
        if each.explanation is not None
    }


def cells(counted: Sequence[Counted]) -> list[list[str]]:
    """The heading, and a line per rung."""
    return [list(HEADING), *(_line(each) for each in counted)]


def _line(counted: Counted) -> list[str]:
    head, e = [counted.rung.name, counted.rung.reads], counted.explanation
    if e is None:
        return [*head, *("-" for _ in HEADING[2:])]
    used, about = e.resources, "~" if e.resources.estimated else ""
    ways = max((t.counts.ways for t in e.hardware if t.counts.conflicts), default=1)
    return [
        *head,
        e.roofline.binding.name,
        f"{e.attainable / 1e12:.1f}",
        f"{about}{used.registers}",
        "-" if used.spills is None else f"{used.spills} B",
        f"{about}{e.occupancy.share:.0%}",
        f"{ways}-way" if ways > 1 else "none",
    ]


def as_json(
    counted: Sequence[Counted], refused: Sequence[tuple[str, str]]
) -> list[dict[str, Json]]:
    """The figures of ``explain --json`` by rung; null if there are none.  ``error`` says why a file
    is refused."""
    from gemmgen.analyze.figures import as_json as figures

    found: list[dict[str, Json]] = [
        {
            "name": each.rung.name,
            "reads": each.rung.reads,
            "documents": each.rung.documents,
            "counted": figures(each.explanation) if each.explanation else None,
            "note": each.note,
            "error": None,
        }
        for each in counted
    ]
    absent: dict[str, Json] = {"reads": None, "documents": None, "counted": None, "note": ""}
    return [*found, *({"name": name, **absent, "error": why} for name, why in refused)]


def title(size: int, gpu: Gpu, counted: Sequence[Counted]) -> str:
    """The heading of the table; it names the compiler, or says that registers are estimated."""
    heading = f"counted at {size} x {size} x {size} for the {gpu.name}; nothing is timed"
    used = next((each.explanation.resources for each in counted if each.explanation), None)
    if used is None:
        return heading
    return f"{heading}; {f'~ is estimated: {used.unknown}' if used.estimated else used.compiler}"
