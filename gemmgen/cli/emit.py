"""``gemmgen emit``: a schedule's kernel, as text or compiled."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import click

from gemmgen import host_texts
from gemmgen.base.errors import CannotCheck, ScheduleError, UsageError
from gemmgen.base.output_file import shown_path, writable
from gemmgen.base.source import Source, shown
from gemmgen.cli import options, shape_option
from gemmgen.cli.files import name_of, put, put_in
from gemmgen.host_texts import ELEMENT_TYPES, ElementTypes, host_program
from gemmgen.ir.identifiers import NAME
from gemmgen.language import parse_schedule
from gemmgen.pipeline import Emitted, compile_schedule
from gemmgen.schedule.assume_lines import assume_key
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Assume, Schedule
from gemmgen.schedule.read import read_bytes
from gemmgen.schedule.roles import extents

DEFAULT = 1024
"""The extents of a program that is written without a shape."""
_PLAIN = re.compile(r"\w[\w.-]*\.cu", re.ASCII)
"""A file's name that needs no quotes in a shell."""
MOST = 1 << 16
"""The greatest divisor that a schedule may state."""


@click.command("emit")
@click.argument("file", required=False)
@click.option("--schedule", "named", metavar="FILE", help="The same as FILE.")
@options.output
@click.option("--name", "kernel", metavar="NAME", help="The kernel's name: launch_NAME.")
@options.arch
@options.settings
@click.option(
    "--shape",
    type=shape_option.shape,
    metavar=shape_option.METAVAR,
    help="Assume the divisors of this shape's extents.",
)
@click.option(
    "--main", "program", is_flag=True, help="Add a program that times the kernel against cuBLAS."
)
@click.option(
    "--types",
    type=click.Choice(ELEMENT_TYPES),
    default="bits",
    help="The launcher takes elements as bits (no include), or as CUDA's types (__nv_bfloat16).",
)
@click.option("--header", is_flag=True, help="Print a C++ header that declares the launcher.")
@click.option("--format", "form", type=click.Choice(["cu", "ptx", "cubin", "sass"]), default="cu")
@click.option(
    "--check",
    "golden",
    metavar="GOLDEN",
    help="Compare with this file and write nothing; exit code 1 and a diff if they differ.",
)
def command(
    file: str | None,
    named: str | None,
    output: str | None,
    kernel: str | None,
    arch: str | None,
    settings: Sequence[options.Setting],
    shape: shape_option.WrittenShape | None,
    program: bool,
    types: ElementTypes,
    header: bool,
    form: str,
    golden: str | None,
) -> None:
    """Print the kernel of the schedule FILE (- for standard input) as CUDA C.

    With --shape the kernel is for extents with this shape's divisors, without the guards that these
    make unnecessary; its header lists the `assume` lines.

    Without --main and --header the file is a kernel with its launcher.  --types cuda gives the
    launcher CUDA's own types and includes their headers, for C++ that has them; --header prints
    the declaration to include there.

    With --main the file is a whole program, which times the kernel and cuBLAS alternately and
    compares their results; its first lines say how to compile and call it.  Its extents are 1024
    without --shape.

    --format sass is the disassembly by nvdisasm or cuobjdump: pip install nvidia-cuda-nvdisasm.

    `require registers` and `require spills` are checked by compiling it.  Without NVRTC and nvcc
    the kernel is printed nevertheless, and the exit code is 3.
    """
    path = _path(file, named)
    if golden is not None and (output is not None or form == "cubin"):
        raise UsageError("--check compares text and writes nothing: leave -o and cubin out")
    _check_form(form, program, header, types)
    if output not in (None, "-"):
        writable(output, path)
    schedule = options.load(path, settings, arch)
    if kernel is not None:
        schedule = _renamed(schedule, kernel)
    if shape is not None:
        schedule = assume_shape(schedule, shape_option.resolve(shape, schedule.gemm))
    emitted = compile_schedule(schedule)
    unchecked = options.unchecked(emitted)
    if program:
        _check_scales(emitted)
        data = _program(emitted, shape, golden or output)
    elif form != "cu":
        data = _compiled(emitted, form, output)
    else:
        data = _text(emitted, header, types)
    if golden is not None:
        assert isinstance(data, str)
        _compare(data, golden, name_of(path))
    else:
        put_in(output, data, path)
    if unchecked:
        click.echo(f"{name_of(path)}: {unchecked}", err=True)
        click.get_current_context().exit(CannotCheck.exit_code)


def _path(file: str | None, named: str | None) -> str:
    """The schedule's file, by either way to name it."""
    path = named if file is None else file
    if path is None:
        raise UsageError("emit needs a schedule: gemmgen emit FILE, or - for standard input")
    if file is not None and named is not None:
        raise UsageError("FILE and --schedule name the same thing: give one of them")
    return path


def _check_scales(emitted: Emitted) -> None:
    """Raise ``UsageError`` if no rival of a program multiplies what the kernel does."""
    scales = emitted.schedule.gemm.scales
    if scales:
        raise UsageError(
            f"--main compares with cuBLAS's gemm, which has no scales of blocks, and the schedule "
            f"has {scales[0].tensor}: leave --main out; gemmgen verify checks the kernel"
        )


def _check_form(form: str, program: bool, header: bool, types: ElementTypes) -> None:
    """Raise ``UsageError`` if two options ask for different texts."""
    if program and form != "cu":
        raise UsageError(f"--main writes CUDA C, and {form} is none: leave --format out")
    if header and (program or form != "cu"):
        raise UsageError("--header is a file of its own: leave --main and --format out")
    if types != "bits" and (program or form != "cu"):
        raise UsageError(
            f"--types {types} changes the launcher's signature alone: leave --main and --format out"
        )


def _renamed(schedule: Schedule, kernel: str) -> Schedule:
    """The same schedule with a kernel of another name, which is checked as in a `kernel` line."""
    if not NAME.fullmatch(kernel):
        rule = "letters, digits and `_`, at most 63 of them, no digit first"
        raise UsageError(f"--name {shown(kernel)}: a kernel's name has {rule}")
    renamed = replace(schedule, kernel=kernel)
    try:
        parse_schedule(Source(format_schedule(renamed)))
    except ScheduleError as wrong:
        raise UsageError(f"--name {kernel}: {wrong.message}; {wrong.hint}") from None
    return renamed


def assume_shape(schedule: Schedule, shape: tuple[int, ...]) -> Schedule:
    """``schedule`` for extents with the divisors of ``shape`` (M, N, K; numbers of matrices don't
    change a kernel).

    Raises ``UsageError`` if the schedule's own assumptions exclude the shape.
    """
    sizes = dict(zip(list(extents(schedule.gemm).values())[:3], shape, strict=False))
    for assume in schedule.assumes:
        _check(assume, sizes)
    kept = tuple(a for a in schedule.assumes if a.divisor is None or a.name not in sizes)
    aliases = {a.name for a in schedule.assumes if a.equals is not None}
    stated = tuple(
        Assume(name, divisor, None)
        for name, size in sizes.items()
        if (divisor := _divisor(size)) > 1 and name not in aliases
    )
    ordered = sorted((*kept, *stated), key=lambda a: assume_key(a, schedule.gemm))
    return replace(schedule, assumes=tuple(ordered))


def _divisor(size: int) -> int:
    """The size itself if a schedule may state it; else its greatest power of two."""
    return size if 0 < size <= MOST else math.gcd(size, MOST) if size else 1


def _check(assume: Assume, sizes: dict[str, int]) -> None:
    size = sizes.get(assume.name)
    if size is None:
        return
    if assume.divisor is not None and size % assume.divisor:
        why = f"{assume.name} % {assume.divisor} == 0, and {size} % {assume.divisor} = "
        raise UsageError(f"--shape: the schedule assumes {why}{size % assume.divisor}")
    if assume.equals is not None and size != sizes[assume.equals]:
        other = f"{assume.equals}, and {size} is not {sizes[assume.equals]}"
        raise UsageError(f"--shape: the schedule assumes {assume.name} == {other}")


def _text(emitted: Emitted, header: bool, types: ElementTypes) -> str:
    """The kernel with its launcher, or the header that declares it."""
    if header:
        return host_texts.header(emitted, types)
    return emitted.text if types == "bits" else host_texts.with_types(emitted, types)


def _program(emitted: Emitted, shape: shape_option.WrittenShape | None, path: str | None) -> str:
    """The kernel with a program around it, for the file at ``path``."""
    from gemmgen.calling.dimensions import solve

    interface, gemm = emitted.interface, emitted.schedule.gemm
    sizes = shape_option.resolve(shape or shape_option.cube(DEFAULT), gemm)
    named = zip(extents(gemm), sizes, strict=True)
    found = solve(interface, {interface.extent(letter): size for letter, size in named}, 0)
    name = PurePath(path or "-").name
    return host_program(emitted, found, name if _PLAIN.fullmatch(name) else "run.cu")


def _compiled(emitted: Emitted, form: str, output: str | None) -> str | bytes:
    """PTX, a cubin or machine code of the kernel, for its target."""
    from gemmgen.gpu.compiler import compile_text

    if form == "cubin" and output is None and sys.stdout.isatty():
        raise UsageError("a cubin is binary: name a file with -o")
    compiled = compile_text(emitted.text, emitted.target)
    if form == "sass":
        from gemmgen.gpu import sass

        return sass.listing(compiled.cubin)
    return compiled.ptx if form == "ptx" else compiled.cubin


def _compare(text: str, golden: str, name: str) -> None:
    """Prints the differences from ``golden`` and exits with code 1 if there are any."""
    from gemmgen.cli.unified_diff import unified

    shown = shown_path(golden)
    known = read_bytes(golden, hint=f"; write it with -o {shown}").decode("utf-8", "replace")
    difference = unified(known, text, shown, f"{name} as emitted")
    if difference:
        put(difference)
        click.echo(f"{name}: the emitted text is not that of {shown}", err=True)
        click.get_current_context().exit(1)
