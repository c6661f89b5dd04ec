"""``gemmgen tune``: the fastest schedule for shapes, or point of a search space, by measuring."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Unpack

import click
from click.core import ParameterSource

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.cli import cluster_option, gpu_option, options, request_options
from gemmgen.cli.files import name_of
from gemmgen.cli.shape_option import HELP, METAVAR, shape
from gemmgen.cli.tune_options import Given

OF_SPACES = ("trials", "resume", "listed", "settings", "arch", "seed")
OF_GEMMS = ("dtype", "epilogue", "leading", "fast", "same_bits", "space_shown")
"""The parameters of one form of the command alone."""


def _budget(text: str) -> float:
    """Seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise click.BadParameter(f"{shown(text)} is not a number of seconds above 0; write 60, say")
    return seconds


@click.command("tune")
@click.argument("file", required=False)
@click.option("--gemm", metavar="GEMM", help="What to tune, in place of FILE.")
@click.option(
    "--dtype",
    default="f32",
    metavar="TYPE",
    help="With --gemm: f32 (the default), f16, bf16, i8, ...; or A=bf16 B=bf16 C=f32.",
)
@click.option("--epilogue", metavar="EXPRESSION", help="With --gemm: relu(acc + bias[n]).")
@click.option(
    "--ld",
    "leading",
    type=request_options.leading_dimension,
    metavar="TENSOR=ELEMENTS",
    multiple=True,
    help="With --gemm: a leading dimension, if the tensor is not dense.",
)
@request_options.fast_option("With --gemm: allow")
@click.option(
    "--same-bits",
    metavar="LETTERS",
    help="With --gemm: m: a row's bits must not depend on the number of rows.",
)
@click.option(
    "--shape",
    "shapes",
    type=shape,
    metavar=METAVAR,
    multiple=True,
    help=f"{HELP}; with FILE, several are averaged.",
)
@click.option("--shapes", "listed_shapes", metavar="LIST", help="A file with a shape a line.")
@click.option(
    "--budget",
    "--seconds",
    "budget",
    type=_budget,
    metavar="SECONDS",
    help="In all; by default 60 with --gemm, 300 with FILE.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="Processes that compile; one a CPU by default."
)
@click.option("-o", "--output", metavar="OUT", help="A file for the schedule.")
@click.option("--show-space", "space_shown", is_flag=True, help="Print the default space.")
@click.option(
    "--no-store",
    "store",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Neither read nor store measured results.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    help="With FILE: the random seed of the search.",
)
@click.option(
    "--trials",
    metavar="FILE.jsonl",
    help="With FILE: append every trial to this file, a line each.",
)
@click.option("--resume", is_flag=True, help="With FILE: continue from the file of --trials.")
@click.option(
    "--list",
    "--dry-run",
    "listed",
    is_flag=True,
    help="With FILE: show the legal points, best estimate first.",
)
@cluster_option.scheduler
@cluster_option.gpus
@gpu_option.gpu
@options.arch
@options.settings
@options.as_json
@click.pass_context
def command(ctx: click.Context, file: str | None, gemm: str | None, **given: Unpack[Given]) -> None:
    """Find the fastest schedule by measuring, for shapes or in a search space.

    \b
      gemmgen tune --gemm "C[m, n] = A[m, k] * B[n, k]" --dtype bf16 --shape 2048x2304x768
      gemmgen tune --gemm "C[m, n] = A[m, k] * B[n, k]" --shapes shapes.txt --budget 600
      gemmgen tune --show-space --dtype bf16 > space.sched
      gemmgen tune space.sched --shape 2048 -o best.sched

    With --gemm the search starts from stored results and from the top of `gemmgen suggest`'s
    ranking, and goes on with neighbors of the fastest in a default space (--show-space).  Several
    shapes share the budget.  What is found is stored at once, for suggest and the next search.  The
    first estimates are for the GPU here; --gpu is for --show-space and --list.

    FILE is a search space, a schedule with sets: tile m={64, 128}.  Its legal points are counted
    first, and tried in the order of a cheap estimate and of the results so far.

    Each kernel is checked before it is timed; the best are timed again, interleaved with cuBLAS
    (cublasLt for FP8 and i8).  The winner is printed as an ordinary schedule with its
    measurements.

    With --scheduler kernels are compiled here and measured by the workers of a Dask cluster that
    have a GPU; with --gpus by a worker for each of these GPUs here.  Checks and first timings are
    shared among them.  A kernel that ends its worker, or does not end, is reported as crashed.

    Exit code 0 with a winner, 1 if no schedule was right, 3 without a GPU.
    """
    written = {
        name: option.opts[0]
        for option in ctx.command.params
        if (name := option.name) and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if file is not None and gemm is not None:
        raise UsageError(
            f"tune takes a space or --gemm, not both: leave {name_of(file)} or --gemm out"
        )
    if file is None:
        _of_gemm(gemm, written, given)
        return
    for name in OF_GEMMS:
        if name in written:
            raise UsageError(
                f"{written[name]} goes with --gemm, and {name_of(file)} is a search space, which "
                "states its problem itself: leave one of them out"
            )
    from gemmgen.cli.tune_space import tune_space

    tune_space(file, given)


def _of_gemm(gemm: str | None, written: Mapping[str, str], given: Given) -> None:
    """The command without a space file."""
    from gemmgen.cli.tune_gemm import BUDGET, TuneRequest, show_space, tune_gemm
    from gemmgen.explore.suggest import GEMM

    space_shown: bool = given["space_shown"]
    if gemm is None and not space_shown:
        raise UsageError(
            'tune takes what to tune: --gemm "C[m, n] = A[m, k] * B[n, k]" with a --shape, or a '
            "file with a search space"
        )
    for name in OF_SPACES:
        if name in written:
            raise UsageError(
                f"{written[name]} goes with a search space: leave it out, or name a file with "
                "one in place of --gemm (--show-space prints the default)"
            )
    problem = TuneRequest(
        gemm or GEMM,
        given["dtype"],
        given["epilogue"],
        dict(given["leading"]),
        tuple(given["shapes"]),
        given["listed_shapes"],
        given["fast"],
        given["same_bits"],
    )
    gpu = given["gpu"]
    if space_shown:
        cluster_option.check_unmeasured("--show-space")
        show_space(problem, gpu)
        return
    tune_gemm(
        problem,
        gpu,
        named="gpu" in written,
        budget=given["budget"] or BUDGET,
        jobs=given["jobs"],
        cluster=(given["scheduler"], given["gpus"]),
        output=given["output"],
        store=given["store"],
        as_json=given["as_json"],
    )
