"""``gemmgen bench``: kernels timed against cuBLAS."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gemmgen.cli import options, timed
from gemmgen.cli.files import put
from gemmgen.cli.shape_option import WrittenShape, cube
from gemmgen.pipeline import compile_schedule

if TYPE_CHECKING:
    from gemmgen.gpu.bench_row import BenchRow

SHAPES = tuple(map(cube, (1024, 2048, 4096)))
_NARROW = 132


@click.command("bench")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.shapes
@options.arch
@options.settings
@options.as_json
def command(
    files: Sequence[str],
    shapes: Sequence[WrittenShape],
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
) -> None:
    """Time the kernel of each FILE against cuBLAS, interleaved, and check the results.

    Without --shape at 1024, 2048 and 4096 cubed.  Medians and quartiles of launches with a warm L2
    cache; differences under 1% are a tie.  "Of the best" is the share of the best of cuBLAS and
    of cublasLt's algorithms; W and MHz were read while a kernel's samples ran.
    """
    kernels = [compile_schedule(options.load(path, settings, arch)) for path in files]
    rows = timed.measure(timed.named(files, kernels), shapes or SHAPES)
    put(timed.json_text(rows) if as_json else _table(rows))
    click.get_current_context().exit(timed.exit_code(rows))


def _table(rows: Sequence[BenchRow]) -> str:
    from rich.console import Console

    from gemmgen.gpu.bench_row import table

    text = io.StringIO()
    width = max(_NARROW, shutil.get_terminal_size((_NARROW, 24)).columns)
    Console(file=text, width=width).print(table(rows))
    return text.getvalue()
