"""``gemmgen diff``: the differences of two schedules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from gemmgen.analyze.comparison import Change, figures_changed, statements_changed
from gemmgen.analyze.explain import explain
from gemmgen.analyze.figures import as_json as values
from gemmgen.analyze.tables import Section
from gemmgen.cli import explain as explaining
from gemmgen.cli import options, shape_option
from gemmgen.cli.files import name_of, put
from gemmgen.cli.sections import show
from gemmgen.cli.unified_diff import unified
from gemmgen.gpu.gpus import GPUS


@click.command("diff")
@click.argument("before")
@click.argument("after")
@explaining.shape
@explaining.gpu
@explaining.beta
@options.arch
@options.settings
@options.as_json
@click.option("--no-text", is_flag=True, help="Leave out the difference of the kernels' texts.")
def command(
    before: str,
    after: str,
    shape: shape_option.WrittenShape,
    gpu: str,
    beta: float,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
    no_text: bool,
) -> None:
    """Compare the schedules BEFORE and AFTER: statements, emitted text, and explain's figures."""
    schedules = [options.load(path, settings, arch) for path in (before, after)]
    sizes = [shape_option.resolve(shape, schedule.gemm) for schedule in schedules]
    old, new = (
        explain(schedule, own, GPUS[gpu], beta=beta)
        for schedule, own in zip(schedules, sizes, strict=True)
    )
    statements = statements_changed(*schedules)
    figures = figures_changed(old, new)
    texts = old.kernel.emitted.text, new.kernel.emitted.text
    difference = unified(texts[0], texts[1], name_of(before), name_of(after))
    if as_json:
        compared = {
            "statements": [asdict(change) for change in statements],
            "text": click.unstyle(difference),
            "before": values(old),
            "after": values(new),
        }
        put(json.dumps(compared, indent=2) + "\n")
        return
    header = ("", name_of(before), name_of(after))
    show((_statements(statements, header),))
    if difference and not no_text:
        put("\n" + difference)
    put("\n")
    show((_figures(figures, header, f"figures at {_shape_text(sizes[0])} on {gpu}"),))


def _shape_text(shape: shape_option.Shape) -> str:
    matrix, batches = (" x ".join(map(str, part)) for part in (shape[:3], shape[3:]))
    return f"{matrix} in {batches} batches" if batches else matrix


def _statements(changes: Sequence[Change], header: tuple[str, ...]) -> Section:
    if not changes:
        return Section("statements", (), (("the same",),))
    return Section("statements", header, tuple((c.name, c.before, c.after) for c in changes))


def _figures(changes: Sequence[Change], header: tuple[str, ...], title: str) -> Section:
    rows = tuple((c.name, c.before, c.after) for c in changes if c.before != c.after)
    same = ", ".join(c.name for c in changes if c.before == c.after)
    return Section(title, header, rows, (f"the same: {same}",) if same else ())
