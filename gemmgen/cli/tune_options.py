"""The values of the options of ``gemmgen tune``."""

from __future__ import annotations

from typing import TypedDict

from gemmgen.cli.shape_option import WrittenShape
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast

NO_SHAPE = (
    "Missing option '--shape': name a shape, --shape 2048x2304x768 say, or a file with one a line, "
    "--shapes LIST"
)


class Given(TypedDict):
    """By the names of the command's parameters; FILE and --gemm apart."""

    dtype: str
    epilogue: str | None
    leading: tuple[tuple[str, int], ...]
    fast: Fast
    same_bits: str | None
    shapes: tuple[WrittenShape, ...]
    listed_shapes: str | None
    budget: float | None
    jobs: int | None
    output: str | None
    space_shown: bool
    store: bool
    seed: int
    trials: str | None
    resume: bool
    listed: bool
    gpu: Gpu
    arch: str | None
    settings: tuple[tuple[str, str], ...]
    scheduler: str | None
    gpus: str | None
    as_json: bool
