"""``gemmgen cache``: the stored results, and why one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path, writable
from gemmgen.base.source import counted
from gemmgen.cli import options
from gemmgen.cli.files import put, put_in, warnings_as_sentences
from gemmgen.cli.request_options import request
from gemmgen.cli.sections import show
from gemmgen.cli.shape_option import METAVAR, WrittenShape, shape
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast
from gemmgen.schedule.read import read_bytes

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group("cache")
def command() -> None:
    """List, explain, export, import and clear measured results.

    `gemmgen tune` stores each schedule that it times in the user's cache, with the GPU, the shape,
    the versions and the date; others ship with gemmgen.  `gemmgen suggest` and gemmgen.torch.op
    take the fastest one for a product at a shape on a GPU.  A result whose schedule is emitted as
    other code now is stale, and is left out until it is measured again.
    """


FILTERS = (
    click.option("--gpu", metavar="NAME", help="Results of this GPU only."),
    click.option("--gemm", metavar="LINE", help="Of this gemm line, whatever its names."),
    click.option("--shape", "wanted", type=shape, metavar=METAVAR, help="At this shape."),
)


def filters(command: Decorated) -> Decorated:
    for option in reversed(FILTERS):
        command = option(command)
    return command


@command.command("list")
@filters
@click.option("--shipped", is_flag=True, help="The results that ship with gemmgen, too.")
@click.option("--check", is_flag=True, help="Compile each schedule, and report stale results.")
@options.as_json
def list_results(
    gpu: str | None,
    gemm: str | None,
    wanted: WrittenShape | None,
    shipped: bool,
    check: bool,
    as_json: bool,
) -> None:
    """List the stored results, fastest first."""
    from gemmgen.cli.stored_results import matching, stored, table
    from gemmgen.explore.results.result_files import to_json
    from gemmgen.explore.results.shipped_table import shipped as table_of_version

    found = [*stored().all(), *(table_of_version().all() if shipped else ())]
    found = matching(found, gpu, gemm, wanted)
    if as_json:
        put(to_json(found))
    else:
        show(table(found, check))


@command.command("explain")
@request
def explain(
    wanted: WrittenShape,
    gemm: str,
    dtype: str,
    epilogue: str | None,
    leading: tuple[tuple[str, int], ...],
    gpu: Gpu,
    fast: Fast,
    same_bits: str | None,
) -> None:
    """Say why `gemmgen suggest` chooses the schedule that it does.

    Lists the results at the shape and those of the nearest shapes: which one is chosen, which are
    stale, and why others are not.
    """
    from gemmgen.cli.shape_option import resolve
    from gemmgen.explore.request import Request, gemm_of
    from gemmgen.explore.results.results_store import Results
    from gemmgen.explore.suggest.choose import choose
    from gemmgen.explore.suggest.explained_choice import explained

    extents = resolve(wanted, gemm_of(gemm))
    asked = Request.of(
        gemm,
        extents,
        dtype=dtype,
        epilogue=epilogue,
        gpu=gpu,
        ld=dict(leading),
        fast=fast,
        same_bits=same_bits,
    )
    with warnings_as_sentences():
        sections = explained(choose(asked), Results.shared())
    show(sections)


@command.command("export")
@click.argument("file", metavar="FILE.json")
@filters
def export(file: str, gpu: str | None, gemm: str | None, wanted: WrittenShape | None) -> None:
    """Write stored results to FILE.json, or to standard output for -."""
    from gemmgen.cli.stored_results import matching, stored
    from gemmgen.explore.results.result_files import to_json

    if file != "-":
        writable(file)
    found = matching(stored().all(), gpu, gemm, wanted)
    put_in(file, to_json(found))
    if file != "-":
        click.echo(f"{shown_path(file)}: {counted(len(found), 'result')}", err=True)


@command.command("import")
@click.argument("file", metavar="FILE.json")
def import_results(file: str) -> None:
    """Store the results of a file that `gemmgen cache export` wrote.

    All of it is checked first; with a mistake in it nothing is stored, and the exit code is 2.  A
    result that is stored already, and newer, stays.
    """
    from gemmgen.cli.stored_results import stored
    from gemmgen.explore.results.freshness import stale
    from gemmgen.explore.results.result_files import from_json

    database = stored()
    found = from_json(read_bytes(file), shown_path(file))
    database.record(found)
    old = sum(bool(stale(result)) for result in found)
    click.echo(f"{shown_path(file)}: {counted(len(found), 'result')}", err=True)
    if old:
        click.echo(f"{old} of them are stale: this version emits other code", err=True)


@command.command("clear")
@filters
@click.option("--stale", "old", is_flag=True, help="Stale results only.")
@click.option("--all", "every", is_flag=True, help="All results.")
def clear(
    gpu: str | None, gemm: str | None, wanted: WrittenShape | None, old: bool, every: bool
) -> None:
    """Remove stored results: those that match all filters, or --all."""
    from gemmgen.cli.stored_results import matching, stored
    from gemmgen.explore.results.freshness import stale

    given: Sequence[object] = [x for x in (gpu, gemm, wanted) if x is not None]
    if every and (given or old):
        raise UsageError("--all clears every result: leave the filters out, or --all")
    if not (given or old or every):
        raise UsageError("name what to clear: --gpu, --gemm, --shape, --stale, or --all")
    database = stored()
    found = matching(database.all(), gpu, gemm, wanted)
    found = [result for result in found if not old or stale(result)]
    database.remove(found)
    click.echo(f"{counted(len(found), 'result')} removed", err=True)
