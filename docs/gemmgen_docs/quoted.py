"""The times, speeds and shares that the documents give, beside those measured here."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmgen.gpu.gpus import GPUS
from gemmgen_docs import measured
from gemmgen_docs.markdown import code, table

FILE = Path(__file__).parents[1] / "data" / "documents_figures.toml"
CUBLAS = "cuBLAS"
ROW_MAJOR = "cuBLAS A[m,k] B[k,n] C[m,n]"
"""The name of cuBLAS's rows in the storage order of the documents."""
SIZE = 1024
"""M = N = K of the figures here beside those of a document that does not say its own."""


@dataclass(frozen=True)
class Figure:
    """One kernel's figures in a document: ``ms``, ``gflops``, ``share`` of cuBLAS in percent,
    ``range`` of that share in its text, and the example that is closest to it."""

    document: str
    kernel: str
    ms: float
    ours: str
    gpu: str = ""
    size: int | None = None
    gflops: float | None = None
    share: int | None = None
    range: str = ""

    def of_peak(self) -> float | None:
        """Its share of what the multiply-adds of its GPU could do, as far as both are known."""
        gpu = GPUS.get(self.gpu.replace(" ", ""))
        return None if gpu is None or self.gflops is None else self.gflops * 1e9 / gpu.flops


@cache
def figures() -> tuple[Figure, ...]:
    """All of them, in the order of the documents."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))["figure"]
    return tuple(Figure(**one) for one in found)


def documents_figures() -> str:
    """A table: each figure of a document, and the closest kernel's here at the same size."""
    header = ("", "kernel", "GPU", "M = N = K", "ms", "GFLOP/s", "of cuBLAS", "of the GPU's peak")
    header += ("here", "ms", "GFLOP/s", "of cuBLAS")
    rows = [(*_theirs(one), *_ours(one)) for one in figures()]
    return table(header, rows, right=(3, 4, 5, 6, 7, 9, 10, 11)) + _note()


def _theirs(one: Figure) -> tuple[str, ...]:
    peak = one.of_peak()
    return (
        one.document,
        one.kernel,
        one.gpu or "not given",
        str(one.size or "not given"),
        f"{one.ms:g}",
        "" if one.gflops is None else f"{one.gflops:,g}" if one.gflops < 1e4 else str(one.gflops),
        _share(one),
        "" if peak is None else f"{peak:.0%}",
    )


def _share(one: Figure) -> str:
    if one.share is None:
        return ""
    return f"{one.share}%" + (f" (text: {one.range}%)" if one.range else "")


def _ours(one: Figure) -> tuple[str, ...]:
    """The closest kernel's figures here, where it was measured."""
    row = cubes(ROW_MAJOR if one.ours == CUBLAS else one.ours).get(one.size or SIZE)
    name = CUBLAS if one.ours == CUBLAS else f"[{code(one.ours)}]({one.ours}.md)"
    if row is None:
        return name, "", "", ""
    return name, f"{row['ms']:.3f}", f"{row['tflops'] * 1e3:,.0f}", measured.share(row)


def cubes(name: str) -> dict[int, measured.Row]:
    """The rows of an example (or of cuBLAS) with M = N = K, by that size."""
    return measured.cubes(name)


def _note() -> str:
    found = measured.of("naive")
    if not found:
        return ""
    return (
        f"\nHere: measured on an {found[0]['gpu']}, f32, at the same size, or at {SIZE} where the "
        "document does not say its own.\n"
    )
