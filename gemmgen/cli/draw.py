"""``gemmgen draw``: a schedule's tiles, threads, fragments and the rest, as SVG or as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path, writable
from gemmgen.cli import gpu_option, options, shape_option
from gemmgen.cli.files import put_in
from gemmgen.draw.kinds import KINDS
from gemmgen.gpu.gpus import Gpu

FORMATS = {".svg": "svg", ".txt": "text"}
"""Formats of files, by their suffix."""
_KINDS = "; ".join(f"{kind}: {line}" for kind, line in KINDS.items())


@click.command("draw", epilog=f"Kinds of drawings.  {_KINDS}.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--what",
    "kind",
    type=click.Choice(tuple(KINDS)),
    default=next(iter(KINDS)),
    show_default=True,
    help="What is drawn.",
)
@click.option(
    "--shape",
    type=shape_option.shape,
    metavar=shape_option.METAVAR,
    help=f"{shape_option.HELP}; a few tiles by default.",
)
@gpu_option.gpu
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(FORMATS.values())),
    help="By default that of OUT's suffix, .svg or .txt; text without OUT.",
)
@options.output
@options.arch
@options.settings
def command(
    files: Sequence[str],
    kind: str,
    shape: shape_option.WrittenShape | None,
    gpu: Gpu,
    form: str | None,
    output: str | None,
    arch: str | None,
    settings: Sequence[options.Setting],
) -> None:
    """Draw the schedule FILE: how it cuts the matrices, and who does what.

    Drawings are made from the program, not from the schedule's text; no GPU is needed.  Several
    schedules are drawn under one another, to be compared.
    """
    chosen = form or _format_of(output)
    if output not in (None, "-"):
        writable(output, *files)
    schedules = [options.load(file, settings, arch) for file in files]
    from gemmgen.analyze.analyzed_kernel import compile_kernel
    from gemmgen.draw.kinds import draw_scene, draw_several
    from gemmgen.draw.scene import Scene
    from gemmgen.draw.svg import svg_of
    from gemmgen.draw.terminal import text_of

    scenes = {
        name: Scene(
            compile_kernel(schedule),
            shape_option.resolve(shape, schedule.gemm) if shape else None,
            gpu,
        )
        for name, schedule in zip(_names(files), schedules, strict=True)
    }
    first, *more = scenes.values()
    drawing = draw_several(kind, scenes) if more else draw_scene(kind, first)
    put_in(output, svg_of(drawing) if chosen == "svg" else text_of(drawing), *files)


def _names(files: Sequence[str]) -> list[str]:
    """The stems of files; their paths if two stems are the same."""
    stems = [PurePath(file).stem for file in files]
    if len(set(files)) < len(files):
        raise UsageError("a schedule is given twice; once is enough")
    return stems if len(set(stems)) == len(stems) else list(files)


def _format_of(output: str | None) -> str:
    """The format of a file by its suffix."""
    if output in (None, "-"):
        return "text"
    suffix = PurePath(output).suffix
    if suffix not in FORMATS:
        known = " or ".join(FORMATS)
        raise UsageError(
            f"{shown_path(output)}: a drawing's file ends in {known}, or give --format"
        )
    return FORMATS[suffix]
