"""``gemmgen suggest``: a schedule for a shape, with the reasons."""

from __future__ import annotations

import click

from gemmgen.cli import options
from gemmgen.cli.files import put_in, warnings_as_sentences
from gemmgen.cli.request_options import request
from gemmgen.cli.shape_option import WrittenShape
from gemmgen.explore.suggest import suggest
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast


@click.command("suggest")
@request
@click.option("--no-measured", is_flag=True, help="Leave measured results out.")
@options.output
def command(
    wanted: WrittenShape,
    gemm: str,
    dtype: str,
    epilogue: str | None,
    leading: tuple[tuple[str, int], ...],
    gpu: Gpu,
    fast: Fast,
    same_bits: str | None,
    no_measured: bool,
    output: str | None,
) -> None:
    """Write a schedule for a product at a shape, with the reasons for its directives.

    A schedule that was measured at the shape is taken: results of `gemmgen tune` on this machine,
    and those that ship with gemmgen (`gemmgen cache list`).  Without one a cost model chooses the
    tile by the matrices' size and the waves of blocks, split-K if tiles are few, and vector widths
    that rows allow; on sm_90 wgmma with TMA, warp roles and clusters for types of tensor cores.
    This command measures nothing: `gemmgen tune` does that.
    """
    from gemmgen.cli.shape_option import resolve
    from gemmgen.explore.request import gemm_of

    extents = resolve(wanted, gemm_of(gemm))
    with warnings_as_sentences():
        found = suggest(
            gemm,
            extents,
            dtype=dtype,
            epilogue=epilogue,
            gpu=gpu,
            ld=dict(leading),
            fast=fast,
            same_bits=same_bits,
            measured=not no_measured,
        )
    put_in(output, found.text)
