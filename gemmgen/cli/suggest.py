"""``gemmgen suggest``: a schedule for a shape, with the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from gemmgen.analyze.gpus import DEFAULT, GPUS
from gemmgen.cli.files import put, write_file
from gemmgen.cli.shapes import METAVAR, Written, shape
from gemmgen.errors import UsageError
from gemmgen.ir.dtypes import BYTES

if TYPE_CHECKING:
    from gemmgen.ir.dtypes import DType


@click.command("suggest")
@click.option(
    "--shape", "wanted", type=shape, metavar=METAVAR, required=True, help="Rows x columns x terms."
)
@click.option(
    "--dtype", type=click.Choice(list(BYTES)), default="f32", help="Of A, B and C; f32 by default."
)
@click.option(
    "--gpu",
    type=click.Choice(list(GPUS), case_sensitive=False),
    default=DEFAULT,
    help="H200 by default.",
)
@click.option("-o", "--output", metavar="OUT", help="A file in place of standard output.")
def command(wanted: Written, dtype: str, gpu: str, output: str | None) -> None:
    """Write a schedule for C[m, n] = A[m, k] * B[k, n] at a shape, and why it is as it is.

    Tiles by the size of the matrices and the waves of blocks, k in parts where tiles are few, wide
    accesses where rows allow them.  It is a guess to begin with; nothing is measured.
    """
    from gemmgen.suggest.choose import suggest
    from gemmgen.suggest.reasons import schedule_text

    if wanted.matrix is None or wanted.named:
        raise UsageError("suggest is for one product of two matrices: --shape MxNxK")
    text = schedule_text(suggest(wanted.matrix, cast("DType", dtype), GPUS[gpu]))
    if output is None or output == "-":
        put(text)
    else:
        write_file(output, text)
