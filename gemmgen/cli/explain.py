"""``gemmgen explain``: a schedule's memory accesses and resources, counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import write_file
from gemmgen.cli import gpu_option, options, shape_option
from gemmgen.cli.files import check_svg, name_of, put
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.launch_shape import Shape
from gemmgen.schedule.model import Schedule

shape = click.option(
    "--shape",
    type=shape_option.shape,
    default="4096",
    metavar=shape_option.METAVAR,
    help=f"{shape_option.HELP}; 4096 of each by default.",
)
beta = click.option("--beta", type=float, default=0.0, help="1: C is read too; 0 by default.")


@click.command("explain")
@click.argument("file")
@shape
@gpu_option.gpu
@beta
@options.arch
@options.settings
@options.as_json
@click.option(
    "--map",
    "what",
    metavar="A.shared",
    help="Draw which thread accesses what: A.global, A.shared, C.global, ...",
)
@click.option(
    "--sass",
    is_flag=True,
    help="The main loop's machine code, annotated, and warp stalls if ncu is here.",
)
@click.option("--no-next", is_flag=True, help="Do not try further statements; saves a second.")
@click.option("--plot", metavar="OUT.svg", help="Write an SVG: the map, or else the roofline.")
def command(
    file: str,
    shape: shape_option.WrittenShape,
    gpu: Gpu,
    beta: float,
    arch: str | None,
    settings: Sequence[options.Setting],
    as_json: bool,
    what: str | None,
    sass: bool,
    no_next: bool,
    plot: str | None,
) -> None:
    """Count the memory accesses of the schedule FILE, and say what bounds it on a GPU.

    The first lines are the conclusion: the speed to expect, what bounds it, and the change that
    would help most.  Further statements are tried, and judged by the bounds and by the cost model
    of `suggest`; where wgmma or another schedule of `suggest` is faster, it is printed.  Counts are
    exact at any shape, with their formulas; no GPU is needed.

    --sass needs NVRTC or nvcc, and nvdisasm (pip install nvidia-cuda-nvdisasm).  With a GPU and ncu
    it shows what warps wait for, measured in one launch at the shape.
    """
    if (what is not None or sass) and as_json:
        raise UsageError("--map and --sass print text, and --json prints JSON: give one of them")
    if what is not None and sass:
        raise UsageError("--map and --sass are separate reports: give one of them")
    if plot is not None:
        check_svg(plot, file)
    schedule = options.load(file, settings, arch)
    sizes = shape_option.resolve(shape, schedule.gemm)
    if sass:
        _show_machine_code(schedule, gpu, sizes)
        return
    if what is not None:
        _show_map(schedule, sizes, what, plot, file)
        return
    from gemmgen.analyze.explain import explain
    from gemmgen.analyze.figures import as_json as values
    from gemmgen.analyze.tables import report
    from gemmgen.cli.sections import show

    explanation = explain(schedule, sizes, gpu, beta=beta)
    if plot is not None:
        from gemmgen.draw.roofline import roofline_drawing
        from gemmgen.draw.svg import svg_of

        write_file(plot, svg_of(roofline_drawing({schedule.kernel: explanation})), file)
    from gemmgen.explore.next_step import wording
    from gemmgen.explore.next_step.expected import expected
    from gemmgen.explore.next_step.trying import next_step

    own = expected(explanation)
    step = None if no_next else next_step(explanation, own)
    if as_json:
        more = wording.as_json(explanation, own, step)
        put(json.dumps({**more, **values(explanation)}, indent=2) + "\n")
    else:
        first = wording.conclusion(explanation, name_of(file), own, step, tried=not no_next)
        show((first, *report(explanation)))


def _show_map(schedule: Schedule, sizes: Shape, what: str, plot: str | None, file: str) -> None:
    """In characters, or into the SVG ``plot``."""
    from gemmgen.analyze.analyzed_kernel import compile_kernel
    from gemmgen.analyze.maps import drawn, pictures

    found = pictures(compile_kernel(schedule), sizes, what)
    if plot is None:
        put("\n".join(drawn(picture) for picture in found))
        return
    from gemmgen.draw.requests import requests_drawing
    from gemmgen.draw.svg import svg_of

    write_file(plot, svg_of(requests_drawing(schedule.kernel, found)), file)


def _show_machine_code(schedule: Schedule, gpu: Gpu, sizes: Shape) -> None:
    from gemmgen.analyze.analyzed_kernel import compile_kernel
    from gemmgen.analyze.machine_code import machine_code
    from gemmgen.analyze.stall_table import stall_table
    from gemmgen.cli.sections import show

    kernel = compile_kernel(schedule)
    table, lines = machine_code(kernel, gpu)
    stalls = stall_table(kernel.emitted, sizes)
    if isinstance(stalls, str):
        table, more = replace(table, notes=(*table.notes, stalls)), ()
    else:
        more = (stalls,)
    show((table, *more))
    put(f"\n{lines}")
