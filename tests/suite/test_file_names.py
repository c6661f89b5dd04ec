"""A file's name says what it holds: two files of one stem hold the same thing, for a reason."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2] / "gemmgen"
SUFFIXES = {".py", ".cpp", ".h"}

SHARED = {
    # A command, and what it does.
    "bench": ("cli", "gpu"),
    "explain": ("analyze", "cli"),
    "fmt": ("cli", "schedule"),
    "ladder": ("cli", "passes"),
    # One stage's whole kernels, or one mechanism, from stage to stage.
    "async_copies": ("interpreter", "lower", "sim"),
    "fragments": ("interpreter", "passes"),
    "kernel": ("expand", "lower"),
    "launcher": ("proof", "sim"),
    "split": ("expand", "lower"),
    "swizzle": ("lower", "passes"),
    "wmma": ("lower", "sim"),
    # The same thing on a GPU and on the CPU.
    # Two languages, or a header.
    "launch_request": ("sim", "sim"),
    "ptx": ("sim", "sim"),
    "runner": ("sim", "sim"),
    "shadow": ("sim", "sim"),
}
"""Stems of several files, and their folders."""


def test_files_of_one_stem_hold_the_same_thing() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(p for p in ROOT.rglob("*") if p.suffix in SUFFIXES):
        if not path.name.startswith("__"):
            found[path.stem].append(path.parent.name)
    shared = {stem: tuple(folders) for stem, folders in found.items() if len(folders) > 1}
    assert shared == SHARED
