"""The options of a request for a schedule: a product, its shape and a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gemmgen.cli import gpu_option
from gemmgen.cli.shape_option import METAVAR, shape
from gemmgen.explore.suggest import GEMM
from gemmgen.ir.decompositions import DECOMPOSITIONS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_LD = re.compile(r"([A-Za-z_]\w*)=([0-9]{1,10})", re.ASCII)


def leading_dimension(text: str) -> tuple[str, int]:
    """``A=1024``: a tensor's leading dimension."""
    found = _LD.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter("a leading dimension is TENSOR=ELEMENTS, A=1024 say")
    return found[1], int(found[2])


def fast_option(sentence: str) -> Callable[[Decorated], Decorated]:
    """``--fast``, or ``--fast=f16``; its help begins with a ``sentence``."""
    return click.option(
        "--fast",
        is_flag=False,
        flag_value="bf16",
        default=None,
        type=click.Choice([*DECOMPOSITIONS]),
        metavar="[=TYPE]",
        help=f"{sentence} f32 from products of bf16 terms on tensor cores (bf16x3, decompose), or "
        "of f16 terms, --fast=f16, which is faster and less accurate.",
    )


OPTIONS = (
    click.option(
        "--shape",
        "wanted",
        type=shape,
        metavar=METAVAR,
        required=True,
        help="MxNxK, or by letter: 512x512x64,b=24.",
    ),
    click.option("--gemm", default=GEMM, show_default=True, help="Storage orders and batches."),
    click.option(
        "--dtype",
        default="f32",
        metavar="TYPE",
        help="f32 (the default), f64, f16, bf16, tf32, i8, e4m3 or e5m2; or A=bf16 B=bf16 C=f32.",
    ),
    click.option("--epilogue", metavar="EXPRESSION", help="The result: relu(acc + bias[n])."),
    click.option(
        "--ld",
        "leading",
        type=leading_dimension,
        metavar="TENSOR=ELEMENTS",
        multiple=True,
        help="A leading dimension, if the tensor is not dense; may be given several times.",
    ),
    gpu_option.gpu,
    fast_option("Allow"),
    click.option(
        "--same-bits",
        metavar="LETTERS",
        help="m: a row's bits must not depend on the number of rows (require same_bits over m).",
    ),
)


def request(command: Decorated) -> Decorated:
    """Adds the options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
