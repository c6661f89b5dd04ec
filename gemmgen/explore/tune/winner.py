"""The result of a search as a schedule file, as a table, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gemmgen.analyze.section import Section
from gemmgen.base.units import duration
from gemmgen.explore.tune.measuring import Reading
from gemmgen.explore.tune.tuner import Tuned
from gemmgen.ir.launch_shape import spelled


def schedule_text(tuned: Tuned) -> str:
    """The winner as a schedule without sets, with its measurements as a comment.

    Equal measurements give equal text: it has no date and no path.
    """
    winner = tuned.finals.winner
    assert winner is not None
    lines = [f"# Tuned by gemmgen on an {tuned.device_info.name}, results checked:"]
    lines += [f"#   {speed}" for speed in _speeds(tuned, winner)]
    tried, legal = len(tuned.state.trials), len(tuned.task.census.legal)
    lines.append(f"# Of {legal:,} legal schedules {tried:,} were tried (seed {tuned.task.seed}).")
    return "\n".join(lines) + "\n" + tuned.points[winner.number].text


def _speeds(tuned: Tuned, reading: Reading) -> Iterator[str]:
    for at, shape in enumerate(tuned.task.shapes):
        ms, speed = reading.ms[at], 2 * math.prod(shape) / reading.ms[at] / 1e9
        share = f", {reading.share[at]:.1%} of cuBLAS" if reading.share else ""
        yield f"{spelled(shape)}: {duration(ms / 1e3, 4)}, {speed:.1f} TFLOP/s{share}"


def section(tuned: Tuned) -> Section:
    """The finalists, fastest first, and the number of points by status."""
    keys, readings = tuned.task.space.open_keys, tuned.finals.readings
    shapes = [spelled(shape) for shape in tuned.task.shapes]
    header = [f"ms, {shape}" for shape in shapes]
    if any(reading.share is not None for reading in readings):
        header += [f"of cuBLAS, {shape}" for shape in shapes]
    rows: list[tuple[str, ...]] = []
    for position, reading in enumerate(readings, 1):
        trial = tuned.state.trials[reading.number]
        figures = [f"{ms:.4f}" for ms in reading.ms]
        figures += [f"{share:.1%}" for share in reading.share or ()]
        figures += ["-" if x is None else str(x) for x in (trial.registers, trial.spills)]
        settings = dict(trial.settings)
        rows.append((str(position), *figures, *(str(settings[key]) for key in keys)))
    counts = tuned.state.count()
    outcomes = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    tried, legal = len(tuned.state.trials), len(tuned.task.census.legal)
    waited, measured = tuned.state.waited, tuned.state.measured
    notes = (
        f"{tried:,} of {legal:,} legal schedules in {tuned.seconds:.0f} s: {outcomes}",
        f"{measured:.0f} s for the search, {waited:.0f} s of them waiting for the compiler",
    )
    title = f"the best on an {tuned.device_info.name}, seed {tuned.task.seed}"
    return Section(title, ("", *header, "registers", "spills", *keys), tuple(rows), notes)


def as_json(tuned: Tuned) -> dict[str, object]:
    """The same for scripts; ``winner`` is null if no point was right."""
    winner = tuned.finals.winner
    return {
        "gpu": tuned.device_info.name,
        "arch": tuned.device_info.arch,
        "shapes": [list(shape) for shape in tuned.task.shapes],
        "seed": tuned.task.seed,
        "seconds": round(tuned.seconds, 3),
        "search_seconds": round(tuned.state.measured, 3),
        "waited_seconds": round(tuned.state.waited, 3),
        "points": tuned.task.census.points,
        "legal": len(tuned.task.census.legal),
        "tried": len(tuned.state.trials),
        "statuses": dict(tuned.state.count()),
        "finalists": [_as_json(tuned, reading) for reading in tuned.finals.readings],
        "winner": None if winner is None else _as_json(tuned, winner),
        "schedule": None if winner is None else schedule_text(tuned),
    }


def _as_json(tuned: Tuned, reading: Reading) -> dict[str, object]:
    trial = tuned.state.trials[reading.number]
    return {
        "point": reading.number,
        "settings": dict(trial.settings),
        "ms": list(reading.ms),
        "share": None if reading.share is None else list(reading.share),
        "registers": trial.registers,
        "spills": trial.spills,
    }
