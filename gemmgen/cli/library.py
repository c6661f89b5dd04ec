"""``gemmgen library``: a folder of kernels with a dispatcher, for C and CMake."""

from __future__ import annotations

from pathlib import Path

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.output_file import shown_path, write_file


@click.command("library")
@click.argument("spec")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Where the files go.")
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if a file differs.")
def command(spec: str, output: str, check: bool) -> None:
    """Write a library of kernels for the products of SPEC, a TOML file.

    Each shape of SPEC gets a schedule as `gemmgen suggest` does.  FOLDER has a .cu for each kernel,
    a dispatcher for each product that launches the kernel of the nearest shape, a C header,
    CMakeLists.txt, a Makefile, a self-test, a manifest, and a Python package over the same library
    (pip wheel FOLDER).  Building it needs nvcc, not gemmgen.

    \b
      name = "gpt2"
      [product.qkv]
      gemm = "C[m, n] = A[m, k] * B[n, k]"
      dtype = "bf16"
      epilogue = "acc + bias[n]"
      shapes = ["1x2304x768", "2048x2304x768"]
    """
    from gemmgen.library.chosen_kernels import kernels_of
    from gemmgen.library.library_files import files_of
    from gemmgen.library.library_spec import parse_spec
    from gemmgen.schedule.read import decode, read_bytes

    text = decode(read_bytes(spec, "; it is a TOML file"), shown_path(spec)).text
    wanted = parse_spec(text, shown_path(spec))
    files = files_of(wanted, list(kernels_of(wanted)))
    folder = Path(output)
    if check:
        _compare(folder, files)
        return
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{shown_path(output)} is a file, not a folder")
    for path, content in files.items():
        there = folder / path
        there.parent.mkdir(parents=True, exist_ok=True)
        write_file(str(there), content)
    click.echo(f"{shown_path(output)}: {len(files)} files", err=True)


def _compare(folder: Path, files: dict[str, str]) -> None:
    """Names the files that differ from what would be written."""
    differ = [
        path
        for path, content in files.items()
        if not (folder / path).is_file() or (folder / path).read_text(encoding="utf-8") != content
    ]
    for path in differ:
        click.echo(f"{shown_path(str(folder / path))} differs", err=True)
    click.get_current_context().exit(1 if differ else 0)
