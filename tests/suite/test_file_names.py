"""A file's name says what it holds: two files of one stem hold the same thing, for a reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

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
    "barriers": ("interpreter", "ir"),
    "boxes": ("ir", "lower", "passes", "sim"),
    "duties": ("expand", "interpreter", "ir"),
    "fragments": ("draw", "interpreter", "passes"),
    "kernel": ("expand", "lower"),
    "launcher": ("proof", "sim"),
    "split": ("expand", "lower"),
    "swizzle": ("lower", "passes"),
    "tensor_map": ("ir", "sim", "sim"),
    "way_out": ("expand", "lower"),
    "tensor_maps": ("emit", "gpu"),
    "wmma": ("lower", "sim"),
    # What decides or lowers a mechanism, and the drawing of it.
    "banks": ("draw", "passes"),
    "copies": ("draw", "lower"),
    "roofline": ("analyze", "draw"),
    "threads": ("draw", "lower"),
    # Two languages, or a header.
    "box_copies": ("sim", "sim"),
    "clocks": ("sim", "sim"),
    "engine_checks": ("sim", "sim"),
    "launch_request": ("sim", "sim"),
    "mbarriers": ("sim", "sim"),
    "ptx": ("sim", "sim"),
    "runner": ("sim", "sim"),
    "scheduler": ("sim", "sim"),
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


SHARED_CLASSES = {
    # The declared kernel, and the one that a user calls.
    "Kernel": ("gpu.launch", "ir.nodes"),
    # The directive, and the field of a tile that it sets.
    "Swizzle": ("ir.buffers", "passes.swizzle"),
}
"""Names of several classes, and their modules."""


@pytest.mark.proof
def test_a_class_has_a_name_of_its_own() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    shared = {name: tuple(modules) for name, modules in found.items() if len(modules) > 1}
    assert shared == SHARED_CLASSES
