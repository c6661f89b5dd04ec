"""Measurements on a GPU, from the files of ``data/`` that exist."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemmgen.gpu.setup import described, from_json

DATA = Path(__file__).parents[1] / "data"
FILES = {"": ("ladder.json", "beyond*.json"), "hopper": ("hopper*.json",)}
"""What ``gemmgen ladder --json`` printed, and of other examples it or ``gemmgen bench --json``; by
the folder of the examples, whose files may have the names of others."""

Row = Mapping[str, Any]


@functools.cache
def rows(folder: str) -> tuple[Row, ...]:
    """The rows of all files of a folder of ``FILES``."""
    found = [path for pattern in FILES[folder] for path in sorted(DATA.glob(pattern))]
    return tuple(row for path in found for row in json.loads(path.read_text(encoding="utf-8")))


def folder_of(name: str) -> str:
    """Where the measurements of an example are: with others of its folder, or with all others."""
    folder = name.rpartition("/")[0]
    return folder if folder in FILES else ""


def of(name: str, folder: str | None = None) -> list[Row]:
    """The rows of an example, at one shape each; with ``folder`` those beside that folder's.  A
    command names rows by the stems of files, or by whole paths if two stems are the same."""
    names = (name, name.rpartition("/")[2], f"examples/{name}.sched")
    found = rows(folder_of(name) if folder is None else folder)
    return [row for row in found if row["name"] in names and row["ms"] is not None]


def cubes(name: str, folder: str | None = None) -> dict[int, Row]:
    """The rows with M = N = K, by that size."""
    return {max(s): row for row in of(name, folder) if len(s := {*row["shape"].values()}) == 1}


def on(found: Sequence[Row]) -> str:
    """The GPU of some rows, with its clock and the versions of the libraries if the files have
    them: ``NVIDIA H200 (SM clock 1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0)``."""
    about = described(map(from_json, found))
    return found[0]["gpu"] + (f" ({about})" if about else "")


def share(row: Row) -> str:
    """The share of cuBLAS's speed, in percent."""
    return "" if row["share"] is None else f"{row['share']:.1%}"
