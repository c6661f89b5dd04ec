"""``gemmgen suggest``: a schedule for a shape, with the reasons."""

from __future__ import annotations

import re

import click

from gemmgen.cli import gpu_option, options
from gemmgen.cli.files import put_in, warnings_as_sentences
from gemmgen.cli.shape_option import METAVAR, WrittenShape, shape
from gemmgen.explore.suggest import GEMM, suggest
from gemmgen.gpu.gpus import Gpu

_LD = re.compile(r"([A-Za-z_]\w*)=([0-9]{1,10})", re.ASCII)


def _leading(text: str) -> tuple[str, int]:
    """``A=1024``: a tensor's leading dimension."""
    found = _LD.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter("a leading dimension is TENSOR=ELEMENTS, A=1024 say")
    return found[1], int(found[2])


@click.command("suggest")
@click.option(
    "--shape",
    "wanted",
    type=shape,
    metavar=METAVAR,
    required=True,
    help="MxNxK, or by letter: 512x512x64,b=24.",
)
@click.option("--gemm", default=GEMM, show_default=True, help="Storage orders and batches.")
@click.option(
    "--dtype",
    default="f32",
    metavar="TYPE",
    help="f32 (the default), f64, f16, bf16, tf32, i8, e4m3 or e5m2; or A=bf16 B=bf16 C=f32.",
)
@click.option("--epilogue", metavar="EXPRESSION", help="The result: relu(acc + bias[n]).")
@click.option(
    "--ld",
    "leading",
    type=_leading,
    metavar="TENSOR=ELEMENTS",
    multiple=True,
    help="A leading dimension, if the tensor is not dense; may be given several times.",
)
@gpu_option.gpu
@click.option(
    "--fast",
    is_flag=True,
    help="Products of f32 may be computed by bf16 parts on tensor cores (decompose).",
)
@click.option("--no-measured", is_flag=True, help="Leave measured results out.")
@options.output
def command(
    wanted: WrittenShape,
    gemm: str,
    dtype: str,
    epilogue: str | None,
    leading: tuple[tuple[str, int], ...],
    gpu: Gpu,
    fast: bool,
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
    from gemmgen.explore.suggest.request import gemm_of

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
            measured=not no_measured,
        )
    put_in(output, found.text)
