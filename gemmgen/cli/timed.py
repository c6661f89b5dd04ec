"""Kernels timed on the GPU against cuBLAS: the common part of ``bench`` and ``ladder``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmgen.base.errors import CannotCheck
from gemmgen.cli.shape_option import WrittenShape, resolve_all
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import extents

if TYPE_CHECKING:
    from gemmgen.gpu.bench_row import BenchRow

Kernels = Mapping[str, Emitted]
"""Kernels by the names of their rows."""


def named(paths: Iterable[str], kernels: Iterable[Emitted]) -> dict[str, Emitted]:
    """Kernels by the stems of their files; by whole paths if two stems are the same."""
    found = list(zip(paths, kernels, strict=True))
    stems = [Path(path).stem for path, _ in found]
    plain = len(set(stems)) == len(stems)
    return {stem if plain else path: k for stem, (path, k) in zip(stems, found, strict=True)}


def measure(kernels: Kernels, shapes: Sequence[WrittenShape]) -> tuple[BenchRow, ...]:
    """A row per kernel and shape, and of cuBLAS; ``CannotCheck`` if there is no GPU."""
    from gemmgen.gpu import device

    missing = device.missing()
    if missing is not None:
        raise CannotCheck(missing)
    from gemmgen.cli.progress import Bar
    from gemmgen.gpu.bench import Entry, bench
    from gemmgen.proof.gpu import reference_of

    rows: list[BenchRow] = []
    groups = _by_letters(kernels)
    # A shape with a letter that some kernel lacks is reported before anything is timed.
    sizes_of = {
        letters: [dict(zip(letters, shape, strict=True)) for shape in resolve_all(shapes, gemm)]
        for letters, group in groups.items()
        for gemm in [next(iter(group.values())).schedule.gemm]
    }
    for letters, group in groups.items():
        entries = [Entry.of(n, k, reference_of(k)) for n, k in group.items()]
        with Bar("timing") as bar:
            rows += bench(entries, sizes_of[letters], progress=bar)
    return tuple(rows)


def _by_letters(kernels: Kernels) -> dict[tuple[str, ...], dict[str, Emitted]]:
    """Kernels grouped by the names of their extents (M, N, K, batches)."""
    groups: dict[tuple[str, ...], dict[str, Emitted]] = {}
    for name, kernel in kernels.items():
        letters = tuple(extents(kernel.schedule.gemm).values())
        groups.setdefault(letters, {})[name] = kernel
    return groups


def exit_code(rows: Sequence[BenchRow]) -> int:
    """1 if a result was wrong, 2 if a kernel can't be called with a shape, else 0."""
    if any(row.ms is not None and not row.checked for row in rows):
        return 1
    return 2 if any(row.ms is None for row in rows) else 0


def json_text(
    rows: Sequence[BenchRow],
    refused: Sequence[tuple[str, str]] = (),
    **more: Mapping[str, object],
) -> str:
    """``rows`` as JSON; ``more`` gives further fields by the name of the row.

    A file that is ``refused`` (its name, and why) has an entry with the field ``error``.
    """
    from gemmgen.gpu.bench_row import as_json

    found = as_json(rows)
    for row in found:
        for name, values in more.items():
            row[name] = values.get(str(row["name"]))
    found += [{"name": name, "error": why} for name, why in refused]
    return json.dumps(found, indent=2) + "\n"
