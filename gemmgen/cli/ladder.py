"""``gemmgen ladder``: a ladder of schedules, timed, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmgen.cli import measure, options
from gemmgen.cli.files import put, shown_path, writable, write_file
from gemmgen.cli.shapes import cube
from gemmgen.errors import UsageError

if TYPE_CHECKING:
    from gemmgen.cli.rungs import Rung

SIZES = (1024, 2048, 4096)


@click.command("ladder")
@click.argument("files", nargs=-1, metavar="[FILE ...]")
@click.option(
    "--size",
    "sizes",
    type=click.IntRange(1, 1 << 16),
    multiple=True,
    help="Rows, columns and terms; may be given several times.  1024, 2048, 4096 by default.",
)
@click.option("--prefixes", is_flag=True, help="One FILE, a directive more in each line.")
@options.as_json
@click.option("--markdown", is_flag=True, help="A Markdown table between its marks.")
@click.option("--update", metavar="README.md", help="Put the table between the marks of this file.")
def command(
    files: Sequence[str],
    sizes: Sequence[int],
    prefixes: bool,
    as_json: bool,
    markdown: bool,
    update: str | None,
) -> None:
    """Time the kernel of each FILE beside cuBLAS, in a table; the examples without one.

    Global reads are counted by formula, in elements.  For the examples the last column has the
    share of cuBLAS that the documents behind them give.
    """
    if prefixes and len(files) != 1:
        raise UsageError("--prefixes takes one schedule: gemmgen ladder --prefixes FILE")
    document = _document(update) if update is not None else ""
    rungs = _rungs(files, prefixes)
    wanted = sizes or SIZES
    kernels = {rung.name: rung.kernel for rung in rungs}
    rows = measure.measure(kernels, [cube(size) for size in wanted])
    from gemmgen.cli import table

    cells, gpu = table.cells(rungs, rows, wanted), rows[0].gpu
    if update is not None:
        write_file(update, table.replaced(document, table.as_markdown(cells, gpu)))
    if as_json:
        put(
            measure.json_text(
                rows,
                reads={rung.name: rung.reads for rung in rungs},
                documents={rung.name: rung.documents for rung in rungs},
            )
        )
    elif markdown:
        put(table.as_markdown(cells, gpu))
    else:
        put(f"{gpu}\n{table.as_text(cells)}")
    for row in rows:
        if row.note:
            click.echo(f"{row.name}, {row.shape[0][1]}: {row.note}", err=True)
    click.get_current_context().exit(measure.exit_code(rows))


def _rungs(files: Sequence[str], prefixes: bool) -> tuple[Rung, ...]:
    from gemmgen.cli import rungs

    if prefixes:
        return rungs.prefixes(files[0])
    return rungs.from_files(files) if files else rungs.built_in()


def _document(path: str) -> str:
    """The text that gets the table; it must have the marks."""
    from gemmgen.cli.table import check_marks

    target, name = writable(path), shown_path(path)
    try:
        text = Path(target).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file") from None
    except (OSError, ValueError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else "it is no UTF-8 text"
        raise UsageError(f"{name} can't be read: {why}") from None
    check_marks(text, name)
    return text
