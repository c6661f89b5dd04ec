"""``gemmgen ladder``: a table of a ladder of schedules, timed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.base.output_file import shown_path, writable, write_file
from gemmgen.cli import gpu_option, options, timed
from gemmgen.cli.files import check_svg, put
from gemmgen.cli.shape_option import cube
from gemmgen.schedule.read import read_bytes

if TYPE_CHECKING:
    from gemmgen.cli.ladder_rungs import Rungs
    from gemmgen.gpu.bench_row import BenchRow
    from gemmgen.gpu.gpus import Gpu

SIZES = (1024, 2048, 4096)


@click.command("ladder")
@click.argument("files", nargs=-1, metavar="[FILE ...]")
@click.option(
    "--size",
    "sizes",
    type=click.IntRange(1, 1 << 16),
    multiple=True,
    help="M = N = K; may be given several times.  1024, 2048, 4096 by default.",
)
@click.option(
    "--prefixes",
    is_flag=True,
    help="FILE with one more directive per row; the default for a single FILE.",
)
@click.option("--counts", is_flag=True, help="Print counts and bounds only, without timing.")
@gpu_option.gpu
@options.as_json
@click.option("--markdown", is_flag=True, help="A Markdown table between its marks.")
@click.option("--update", metavar="PAGE.md", help="Put the table between the marks of this file.")
@click.option("--plot", metavar="OUT.svg", help="Draw the times, too: TFLOP/s and share of cuBLAS.")
@click.option(
    "--from",
    "earlier",
    metavar="ROWS.json",
    help="--plot the rows of a --json file, without timing.",
)
def command(
    files: Sequence[str],
    sizes: Sequence[int],
    prefixes: bool,
    counts: bool,
    gpu: Gpu,
    as_json: bool,
    markdown: bool,
    update: str | None,
    plot: str | None,
    earlier: str | None,
) -> None:
    """Time the kernel of each FILE against cuBLAS, in a table; by default the examples.

    A single FILE is built up directive by directive, a line for each.  Global reads are counted by
    formula, in elements.  The last column is the share published for the examples (RTX 3080,
    1024).  Without a GPU the table has the counts alone (--counts), and the exit code is 3.  A FILE
    that is refused is a line that says why; the exit code is 2 if no kernel could be timed, and 1
    if a result was wrong.
    """
    if prefixes and len(files) != 1:
        raise UsageError("--prefixes takes one schedule: gemmgen ladder --prefixes FILE")
    if counts and (markdown or update is not None):
        raise UsageError("--counts prints another table: leave --markdown and --update out")
    if plot is not None:
        if counts:
            raise UsageError(
                "--plot draws times, and --counts times nothing: leave one of them out"
            )
        check_svg(plot, *files, *([earlier] if earlier is not None else []))
    if earlier is not None:
        others = (files, sizes, prefixes, counts, as_json, markdown, update)
        _plot_earlier(earlier, plot, alone=not any(others))
        return
    document = _document(update) if update is not None else ""
    found, wanted = _rungs(files), sizes or SIZES
    if counts:
        _show_counts(found, wanted[-1], gpu, as_json)
        return
    kernels = {rung.name: rung.kernel for rung in found.rungs}
    try:
        rows = timed.measure(kernels, [cube(size) for size in wanted])
    except CannotCheck:
        if update is None and not markdown:
            _show_counts(found, wanted[-1], gpu, as_json)
        raise
    _show_times(found, rows, wanted, gpu, document, as_json, markdown, update)
    if plot is not None:
        from gemmgen.cli.ladder_plot import write_plot

        write_plot(plot, json.loads(timed.json_text(rows)), *files)
    click.get_current_context().exit(_exit_code(found, rows))


def _plot_earlier(rows: str, plot: str | None, *, alone: bool) -> None:
    """Draws a file of rows."""
    if plot is None:
        raise UsageError("--from draws what was measured before: name a file with --plot OUT.svg")
    if not alone:
        raise UsageError("--from does not time: use it with --plot only")
    from gemmgen.cli.ladder_plot import read_rows, write_plot

    write_plot(plot, read_rows(rows), rows)


def _show_times(
    found: Rungs,
    rows: Sequence[BenchRow],
    sizes: Sequence[int],
    model: Gpu,
    document: str,
    as_json: bool,
    markdown: bool,
    update: str | None,
) -> None:
    from gemmgen.cli import ladder_counts as counted
    from gemmgen.cli import table
    from gemmgen.gpu.bench_row import measured_on

    rungs, gpu = found.rungs, measured_on(rows)
    limits = counted.limits(rungs, sizes[-1], model)
    cells = table.with_refused(table.cells(rungs, rows, sizes, limits), found.left_out)
    if update is not None:
        write_file(update, table.replaced(document, table.as_markdown(cells, gpu)))
    if as_json:
        reads = {rung.name: rung.reads for rung in rungs}
        documents = {rung.name: rung.documents for rung in rungs}
        more = {"reads": reads, "documents": documents, "limited_by": limits}
        put(timed.json_text(rows, found.left_out, **more))
    elif markdown:
        put(table.as_markdown(cells, gpu))
    else:
        put(f"{gpu}\n{table.as_text(cells)}")
    for row in rows:
        if row.note:
            click.echo(f"{row.name}, {row.shape[0][1]}: {row.note}", err=True)


def _exit_code(found: Rungs, rows: Sequence[BenchRow]) -> int:
    """1 if a result was wrong, 2 if no rung could be timed, else 0."""
    names = {rung.name for rung in found.rungs}
    ran = [row for row in rows if row.name in names and row.ms is not None]
    if any(not row.checked for row in ran):
        return 1
    return 0 if ran else UsageError.exit_code


def _show_counts(found: Rungs, size: int, gpu: Gpu, as_json: bool) -> None:
    """The figures that need no GPU: reads, registers, conflicts, and the roofline's bound."""
    from gemmgen.cli import ladder_counts as counted
    from gemmgen.cli import table

    figures = counted.count(found.rungs, size, gpu)
    if as_json:
        put(json.dumps(counted.as_json(figures, found.left_out), indent=2) + "\n")
    else:
        cells = table.with_refused(counted.cells(figures), found.left_out)
        put(f"{counted.title(size, gpu, figures)}\n{table.as_text(cells)}")
    for each in figures:
        if each.note:
            click.echo(f"{each.rung.name}: {each.note}", err=True)


def _rungs(files: Sequence[str]) -> Rungs:
    """The rungs, and the files that are refused."""
    from gemmgen.cli import ladder_rungs

    if not files:
        return ladder_rungs.Rungs(ladder_rungs.built_in())
    if len(files) > 1:
        found = ladder_rungs.from_files(files)
        for name, why in found.left_out:
            click.echo(f"refused: {name} ({why}); `gemmgen check` lists all mistakes", err=True)
        return found
    found = ladder_rungs.prefixes(files[0])
    for name, why in found.left_out:
        click.echo(f"no kernel yet: {name} ({why})", err=True)
    return ladder_rungs.Rungs(found.rungs)


def _document(path: str) -> str:
    """The text of the file for the table; it must have the marks."""
    from gemmgen.cli.table import check_marks

    writable(path)
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{shown_path(path)} can't be read: it is not UTF-8 text") from None
    check_marks(text, shown_path(path))
    return text
