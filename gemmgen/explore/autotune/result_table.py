"""The results of ``tune --gemm`` as a table, as JSON, and the winner as a schedule file."""

from __future__ import annotations

from gemmgen.analyze.section import Section
from gemmgen.base.units import duration, significant
from gemmgen.explore.autotune.shape_tuning import ShapeResult, Tuning
from gemmgen.ir.launch_shape import spelled

_NOTES = {
    "so far": "so far: the best when the search was interrupted; right, timed briefly, and not "
    "checked on other shapes",
    "none": "none: no candidate was right and could be timed",
    "not reached": "not reached: the search was interrupted before it",
}


def section(tuning: Tuning) -> Section:
    """A row for each shape: the winner's time, its speed, its share of cuBLAS, and its origin."""
    rows = tuple(_row(result) for result in tuning.results)
    outcomes = {result.outcome for result in tuning.results}
    notes = tuple(text for outcome, text in _NOTES.items() if outcome in outcomes)
    gemm = f"tuned on an {tuning.device_info.name}"
    header = ("shape", "time", "TFLOP/s", "of cuBLAS", "from", "tried", "")
    return Section(gemm, header, rows, notes)


def _row(result: ShapeResult) -> tuple[str, ...]:
    outcome = "" if result.outcome == "proved" else result.outcome
    speed = result.tflops
    return (
        spelled(result.request.shape),
        "-" if result.ms is None else duration(result.ms / 1e3, 4),
        "-" if speed is None else significant(speed),
        "-" if result.share is None else f"{result.share:.1%}",
        result.origin or "-",
        f"{result.tried:,}",
        outcome,
    )


def schedule_text(result: ShapeResult, tuning: Tuning) -> str:
    """The winner as a schedule, its measurement as a comment; it has no date and no path."""
    assert result.text is not None and result.ms is not None and result.tflops is not None
    share = "" if result.share is None else f", {result.share:.1%} of cuBLAS"
    speed = f"{duration(result.ms / 1e3, 4)}, {significant(result.tflops)} TFLOP/s{share}"
    return (
        f"# Tuned by gemmgen on an {tuning.device_info.name}, results checked:\n"
        f"#   {spelled(result.request.shape)}: {speed}\n"
        f"# Of {result.tried:,} schedules that were tried ({result.origin}).\n{result.text}"
    )


def as_json(tuning: Tuning) -> dict[str, object]:
    """The same for scripts; ``schedule`` is null for a shape without a result."""
    return {
        "gpu": tuning.device_info.name,
        "arch": tuning.device_info.arch,
        "interrupted": tuning.cause is not None,
        "shapes": [
            {
                "shape": list(result.request.shape),
                "outcome": result.outcome,
                "ms": result.ms,
                "tflops": result.tflops,
                "share": result.share,
                "origin": result.origin or None,
                "tried": result.tried,
                "schedule": None if result.text is None else schedule_text(result, tuning),
            }
            for result in tuning.results
        ],
    }
