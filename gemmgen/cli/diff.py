"""``gemmgen diff``: what changes from one schedule to another: statements, text, figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from gemmgen.analyze.explain import Explanation, explain
from gemmgen.analyze.figures import as_figures
from gemmgen.analyze.figures import as_json as values
from gemmgen.analyze.section import Section
from gemmgen.cli import explain as explaining
from gemmgen.cli import gpu_option, options, shape_option
from gemmgen.cli.files import name_of, put
from gemmgen.cli.sections import show
from gemmgen.cli.unified_diff import unified
from gemmgen.gpu.gpus import Gpu
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.summation import order_text

ABSENT = "-"


class Change(NamedTuple):
    """Something called ``name``: as it was and as it is; ``ABSENT`` if it is not."""

    name: str
    before: str
    after: str


@click.command("diff")
@click.argument("before")
@click.argument("after")
@explaining.shape
@gpu_option.gpu
@explaining.beta
@options.arch
@options.settings
@options.as_json
@click.option("--no-text", is_flag=True, help="Leave out the difference of the kernels' texts.")
def command(
    before: str,
    after: str,
    shape: shape_option.WrittenShape,
    gpu: Gpu,
    beta: float,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
    no_text: bool,
) -> None:
    """Compare the schedules BEFORE and AFTER: statements, summation order, text, explain's figures.

    Kernels with the same summation order give equal bits for the same inputs.
    """
    schedules = [options.load(path, settings, arch) for path in (before, after)]
    sizes = [shape_option.resolve(shape, schedule.gemm) for schedule in schedules]
    old, new = (
        explain(schedule, own, gpu, beta=beta)
        for schedule, own in zip(schedules, sizes, strict=True)
    )
    changes = _changes(*map(_statements, schedules))
    statements = tuple(change for change in changes if change.before != change.after)
    texts = old.kernel.emitted.text, new.kernel.emitted.text
    difference = unified(*texts, name_of(before), name_of(after))
    if as_json:
        compared = {
            "statements": [change._asdict() for change in statements],
            "summation_order": _orders_as_json(old, new),
            "text": click.unstyle(difference),
            "before": values(old),
            "after": values(new),
        }
        put(json.dumps(compared, indent=2) + "\n")
        return
    names = ("", name_of(before), name_of(after))
    stated = Section("statements", names if statements else (), statements or (("the same",),))
    show((stated, _orders(old, new, names)))
    if difference and not no_text:
        put("\n" + difference)
    put("\n")
    figures = _changes(as_figures(old), as_figures(new))
    title = f"figures at {_shape_text(sizes[0])} on {gpu.name}"
    show((_figures(figures, names, title),))


def _orders(old: Explanation, new: Explanation, names: tuple[str, str, str]) -> Section:
    """Whether both sum in one order, and so give the same bits; else in what they differ."""
    found = order_text.changes(old.summation, new.summation)
    if old.summation == new.summation:
        about = order_text.SAME if old.summation.reproducible else order_text.SAME_BUT_ATOMIC
        return Section(order_text.TITLE, (), ((about,),))
    return Section(f"{order_text.TITLE}: bits may differ", names, found)


def _orders_as_json(old: Explanation, new: Explanation) -> dict[str, object]:
    changes = order_text.changes(old.summation, new.summation)
    return {
        "same": old.summation == new.summation,
        "equal_bits": old.summation == new.summation and old.summation.reproducible,
        "differs": list(old.summation.differences(new.summation)),
        "changes": [Change(*change)._asdict() for change in changes],
    }


def _shape_text(shape: shape_option.Shape) -> str:
    matrix, batches = (" x ".join(map(str, part)) for part in (shape[:3], shape[3:]))
    return f"{matrix} in {batches} batches" if batches else matrix


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    """All names, those too whose values stay the same."""
    names = {**old, **new}
    return tuple(Change(name, old.get(name, ABSENT), new.get(name, ABSENT)) for name in names)


def _statements(schedule: Schedule) -> dict[str, str]:
    """Each statement by its first word; those of one word together, in passes' order."""
    found: dict[str, str] = {}
    for line in format_schedule(schedule).splitlines():
        word, entry = line.split()[0], " ".join(line.split())
        found[word] = f"{found[word]}; {entry}" if word in found else entry
    return found


def _figures(changes: Sequence[Change], header: tuple[str, ...], title: str) -> Section:
    rows = tuple(change for change in changes if change.before != change.after)
    same = ", ".join(change.name for change in changes if change.before == change.after)
    return Section(title, header, rows, (f"the same: {same}",) if same else ())
